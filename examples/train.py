"""Post-train a small language model on a game with MS-GRPO, and compare it before and after, in a minute of two cores.

    python examples/train.py
    python examples/train.py --model hf:Qwen/Qwen2.5-0.5B-Instruct --iterations 100 --learning-rate 1e-6

``examples/msgrpo_minimal.py`` has the method itself on a few pages. ``python -m agents.msgrpo --config NAME`` trains
from a file.
"""

import argparse

import benchmark
from agents import load_agent
from agents.msgrpo import MSGRPOConfig, MSGRPOTrainer

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--model", default="tiny", help="a model of this process, such as tiny or hf:FOLDER")
parser.add_argument("--scenario", default="frozen-lake")
parser.add_argument("--iterations", type=int, default=20)
parser.add_argument("--learning-rate", type=float, default=1e-3)
parser.add_argument("--episodes", type=int, default=100, help="fresh ones, on which both are scored")
parser.add_argument("--out", default="runs/example", help="a new folder for the model and the run's metrics")
options = parser.parse_args()

config = MSGRPOConfig(
    groups=8,  # initial states an iteration
    group_size=8,  # episodes from each of them, compared with each other
    iterations=options.iterations,
    learning_rate=options.learning_rate,
    schedule="linear",
    temperature=1.0,
    max_response_tokens=48,
    eval_every=0,
    out=options.out,
)
try:
    model = getattr(load_agent(options.model), "model", None)
    if not hasattr(model, "tokenizer"):
        parser.error(f"--model {options.model} has no weights here to train; accepted: tiny, smollm2, hf:FOLDER")
    MSGRPOTrainer(model.model, model.tokenizer, options.scenario, config).train()
except ValueError as error:  # such as a scenario that doesn't exist, or a folder with another run in it
    parser.error(str(error))

players = {"before": options.model, "after": f"hf:{options.out}/last"}
results = benchmark.evaluate(players, scenarios=options.scenario, episodes=options.episodes, seed_offset=1000)
print(results.leaderboard())
print(results.compare("after", "before"))
