"""Wrappers for RL libraries: actions by number with masks, boards as arrays, and the prompts of the benchmark.

They stand around ``gym.make(id)``, and around every game of a batch: ``gym.make_vec(id, num_envs=8,
vectorization_mode="sync", wrappers=[BoardObservation, DiscreteActions])``.
"""

from pkgutil import resolve_name
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.utils import RecordConstructorArgs
from numpy.typing import DTypeLike, NDArray

from textgames.environments.solo import TextGameEnv
from textgames.environments.spaces import ObservationText
from textgames.extras import GAMES_ALONE
from textgames.texts.actions import CLOSE_TAG, OPEN_TAG

Env = gym.Env[Any, Any]


def _game_env(env: Env) -> TextGameEnv:
    inner = env.unwrapped
    if not isinstance(inner, TextGameEnv):
        raise TypeError(f"this wrapper takes a Gymnasium environment of textgames, gym.make(ID), got {inner}")
    return inner


class DiscreteActions(gym.ActionWrapper[Any, Any, str], RecordConstructorArgs):
    """The game's actions by number: action ``k`` of ``Discrete(n)`` is the one called ``names[k]``.

    An action that isn't legal now is an invalid response. A ValueError for a number without a name, and if the game has
    actions that can't be listed.

    Attributes:
        names: the names of the actions, ``game.actions``.
    """

    def __init__(self, env: Env) -> None:
        RecordConstructorArgs.__init__(self)
        super().__init__(env)
        self.names = _game_env(env).game.actions
        if not self.names:
            raise self._refusal(f"it takes texts such as {env.action_space.sample()!r}")
        self.action_space = spaces.Discrete(len(self.names))

    def _refusal(self, what: str) -> ValueError:
        game = type(_game_env(self.env).game).__name__
        return ValueError(f"DiscreteActions takes a game whose actions are all listed, in game.actions; {game}: {what}")

    def _legal(self) -> tuple[str, ...]:
        env = _game_env(self.env)
        legal = env.game.legal_actions(env.state, env.player) if env.is_asked else self.names
        if not legal:
            raise self._refusal("a free text is asked for now, as in a speech")
        return legal

    def action(self, action: int) -> str:
        self._legal()
        if not self.action_space.contains(action):
            raise ValueError(f"an action is a whole number from 0 to {len(self.names) - 1}, got {action!r}")
        return f"{OPEN_TAG}{self.names[int(action)]}{CLOSE_TAG}"

    def action_masks(self) -> NDArray[np.bool_]:
        """Return which actions are legal now, shape (n,), as MaskablePPO asks for it; all when the episode is over."""
        legal = self._legal()
        return np.array([name in legal for name in self.names])


class BoardObservation(gym.ObservationWrapper[NDArray[Any], Any, str], RecordConstructorArgs):
    """The board that the player may see, as planes of 0 and 1, channels first: ``[channel, row from the top, column]``.

    A ValueError if the game has none (:meth:`textgames.tsmg.TSMG.seen_by`), or draws one of another size or with a
    character that has no colour.

    Args:
        env: an environment of a game with a board.
        dtype: of the planes, ``numpy.float32`` or ``numpy.uint8``.

    Attributes:
        marks: the character of each channel, in the order of the game's ``palette``; ``game.legend`` explains them.
    """

    def __init__(self, env: Env, dtype: DTypeLike = np.float32) -> None:
        RecordConstructorArgs.__init__(self, dtype=dtype)
        super().__init__(env)
        game, player = _game_env(env).game, _game_env(env).player
        seen = game.seen_by(game.initial_state(np.random.default_rng(0)), player)
        if seen is None:
            raise ValueError(
                f"{type(game).__name__} has no board that shows its player what the text does: leave its observation a "
                "text, or take PromptObservation in place of BoardObservation"
            )
        self.marks, (rows, _) = tuple(game.palette), seen
        self.observation_space = spaces.Box(0, 1, (len(self.marks), len(rows), len(rows[0])), np.dtype(dtype).type)

    def observation(self, observation: str) -> NDArray[Any]:
        env = _game_env(self.env)
        rows, _ = env.game.seen_by(env.state, env.player) or ((), {})
        cells = np.array([list(row) for row in rows])
        planes: NDArray[Any] = (cells == np.array(self.marks)[:, None, None]).astype(self.observation_space.dtype)
        if planes.shape != self.observation_space.shape or planes.sum() != cells.size:
            raise ValueError(
                f"the board of {type(env.game).__name__} has to keep its size and the characters of the palette, "
                f"{''.join(self.marks)!r}; it is {rows} now"
            )
        return planes


class PromptObservation(gym.ObservationWrapper[Any, Any, str], RecordConstructorArgs):
    """Prompt of ``textbench run``: rules, observation, moves left, legal moves, form of the answer.

    Args:
        env: the environment; what its ``step`` is given counts as the model's response, which ``textbench run`` stops
            at the closing action tag.
        prompt_map: an :class:`agents.PromptMap` with mode, wording and history; that of ``textbench run`` by default.
        messages: observe a tuple of chat messages, ``{"role": ..., "content": ...}``, in place of one text.
        moves_listed: whether the prompt lists the legal moves.
    """

    def __init__(self, env: Env, prompt_map: Any = None, *, messages: bool = False, moves_listed: bool = True) -> None:
        RecordConstructorArgs.__init__(self, prompt_map=prompt_map, messages=messages, moves_listed=moves_listed)
        super().__init__(env)
        if not isinstance(env.action_space, spaces.Text):
            raise ValueError(f"PromptObservation takes responses, not {env.action_space}: wrap it in DiscreteActions")
        # by their paths, since this package imports none of those that are made of it
        try:
            prompts, self._turn = resolve_name("textbench.agents.prompt"), resolve_name("textbench.agents.turn")
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(
                f"PromptObservation writes the prompts of textbench, and here are its games alone ({error}): "
                f"pip uninstall {GAMES_ALONE}, then install textbench",
                name=error.name,
            ) from error
        self._as_text, self._prompt_map = prompts.as_text, prompts.PromptMap() if prompt_map is None else prompt_map
        self._messages, self._moves_listed = messages, moves_listed
        self._seed: tuple[int, ...] = ()
        self._turns: list[tuple[tuple[str, str], int | None]] = []  # observation, response; moves left
        text = ObservationText()
        message = spaces.Dict({"role": spaces.Text(16), "content": text})
        self.observation_space = spaces.Sequence(message) if messages else text

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        self._seed, self._turns = () if seed is None else (seed,), []
        return super().reset(seed=seed, options=options)

    def step(self, action: str) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        env = _game_env(self.env)
        if env.is_asked:
            self._turns.append(((env.game.observe(env.state, env.player), action), env.steps_left))
        return super().step(action)

    def observation(self, observation: str) -> Any:
        """Return the prompt of this decision; the one of an episode's end lists no moves."""
        env = _game_env(self.env)
        if env.is_asked:
            request = self._turn.request_in(env.game, env.state, env.player, env.steps_left, self._seed)
        else:  # over: what could be done isn't asked for
            request = self._turn.TurnRequest(
                env.game.observe(env.state, env.player), env.instructions, player=env.player, steps_left=env.steps_left
            )
        request.history, request.history_steps_left = zip(*self._turns, strict=True) if self._turns else ((), ())
        request.moves_listed = self._moves_listed
        prompt = self._prompt_map(request)
        return tuple(message.as_chat() for message in prompt) if self._messages else self._as_text(prompt)
