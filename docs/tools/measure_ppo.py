"""Train the policy of docs/integrations/ppo.md with several seeds, and draw docs/images/ppo.svg.

    python docs/tools/measure_ppo.py

Runs the page's own code, in five minutes on one core. The successes stand in docs/integrations/ppo.json.
"""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import torch

import benchmark
from agents.common.intervals import student
from research.jobs.pictures import COLOURS, figure_of, save, style

DOCS = Path(__file__).parents[1]
PAGE, DATA, PICTURE = DOCS / "integrations/ppo.md", DOCS / "integrations/ppo.json", DOCS / "images/ppo.svg"
SEEDS, STEPS, EPISODES = 5, 10_240, 500  # steps are ten of the page's batches of 16 x 64


def measured() -> dict[str, Any]:
    """Return the share of successes by steps of training, for each seed."""
    train, evaluate = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    made, _, learn = train.rpartition("model.learn(")
    steps = [*range(0, int(learn.strip(")\n")) + 1, STEPS)]
    runs = []
    for seed in range(SEEDS):
        scope: dict[str, Any] = {}
        exec(made.replace("seed=0", f"seed={seed}"), scope)
        runs.append([])
        for trained in steps:
            if trained:
                scope["model"].learn(STEPS, reset_num_timesteps=False)
            exec(evaluate, scope)
            runs[-1].append(int(scope["successes"]) / EPISODES)
            print(seed, trained, runs[-1][-1], flush=True)
    scores = benchmark.evaluate("random", scenarios="frozen-lake", episodes=EPISODES, quiet=True).leaderboard().scores
    end = student([run[-1] for run in runs])
    last = {"value": end.value, "low": end.low, "high": min(1.0, end.high)}
    return {"blind": scores[0]["blind"]["value"], "steps": steps, "success": runs, "last": last}


def draw(data: dict[str, Any]) -> None:
    """Draw the mean of the seeds with its 95% interval, each seed, and the best blind play."""
    mean, low, high = np.transpose([student(some)[:3] for some in zip(*data["success"], strict=True)])
    with style():
        figure, ((axis,),) = figure_of(1, 1, 5, 3)
        within = np.maximum(0, low), np.minimum(1, high)
        axis.fill_between(data["steps"], *within, color=COLOURS[0], alpha=0.2, lw=0)
        axis.plot(data["steps"], np.transpose(data["success"]), color=COLOURS[0], lw=0.5, alpha=0.5)
        axis.plot(data["steps"], mean, color=COLOURS[0], lw=2)
        axis.axhline(data["blind"], color=COLOURS[1], ls="--", label="best play that ignores the observation")
        axis.set(xlabel="steps of training", ylabel="success on frozen-lake", ylim=(0, 1))
        axis.legend(loc="lower right", frameon=False)
        save(figure, PICTURE)


if __name__ == "__main__":
    torch.set_num_threads(1)
    DATA.write_text(json.dumps(measured(), indent=1) + "\n", encoding="utf-8")
    draw(json.loads(DATA.read_text(encoding="utf-8")))
