"""One episode as text, to be read by people and kept as a golden file."""

from hashlib import sha256
from typing import Any

import numpy as np

from textgames.conformance.play import draw, written
from textgames.registry import parallel_env


def transcript(id: str, *, seed: int, responses: tuple[str, ...] = (), shown: int = 100, **settings: Any) -> str:
    """Return one episode as text: what every player read and wrote, and what came of it.

    Players write ``responses`` in turn, then actions drawn with ``seed``, to the episode's end (or 100 rounds). What
    follows the first ``shown`` rounds is a single line, whose digest changes with any of it.
    """
    # "default" draws nothing: what follows an unreadable response is the same whatever an environment's own choice is
    env = parallel_env(id, **{"invalid_action": "default", **settings})
    rng = np.random.default_rng(seed)
    observations, _ = env.reset(seed=seed)
    lines = [f"# {id} {settings or ''}".rstrip() + f", seed {seed}"]
    lines += [f"## instructions for {agent}\n{env.instructions[agent]}" for agent in env.agents]
    given = iter(responses)
    first: list[str] = []
    for round_ in range(100):
        if not env.agents:
            break
        if round_ == shown:
            first, lines = lines, []
        actions = {
            agent: next(given, None) or written(env.game, draw(env.game, env.state(), agent, rng))
            for agent in env.to_move
        }
        lines += [f"## round {round_}, {agent} reads\n{observations[agent]}" for agent in env.to_move]
        observations, rewards, terminations, truncations, infos = env.step(actions)
        for agent in rewards:
            end = " terminated" * terminations.get(agent, False) + " truncated" * truncations.get(agent, False)
            if agent not in actions:
                if rewards[agent] or end:
                    lines.append(f"## {agent} was not asked\nreward {rewards[agent]:g}{end}")
                continue
            how = infos[agent]["unreadable"] or "valid"
            executed = f"executed {infos[agent]['action']!r}, reward {rewards[agent]:g}{end}"
            lines.append(f"## {agent} writes {actions[agent]!r}\n{how}, {executed}")
    lines += [f"## {agent} reads at the end\n{text}" for agent, text in observations.items()]
    text = "\n".join(lines) + "\n"
    if first:
        text = f"## {text.count(chr(10))} more lines, with the SHA-256 {sha256(text.encode()).hexdigest()}\n"
    return "\n".join([*first, text])
