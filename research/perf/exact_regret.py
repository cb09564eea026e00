"""What models give away per decision, exactly, at the positions of random play: one line a model.

    python research/perf/exact_regret.py runs/x/seed-0/base runs/x/seed-*/last --scenario tic-tac-toe

For folders in Hugging Face format that answer with the action alone, and scenarios with an exact yardstick. The
positions are those of the scenario's first seeds, the same for every model; ``agents.analysis.regret`` says how it is
computed.
"""

import argparse
from pathlib import Path

from agents import Decoding, LanguageAgentPolicy, PromptMap
from agents.analysis.regret import DirectAnswers, exact_regret, random_positions
from agents.models.local.loading.card import read_card
from agents.models.local.transformers import TransformersModel
from agents.msgrpo.run.evaluating.evaluation import evaluation_tasks


def main() -> None:
    """Measure the regret of the named models and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--scenario", required=True)
    parser.add_argument("--episodes", type=int, default=100, help="random episodes whose positions are looked at")
    parser.add_argument("--temperature", type=float, default=1.0)
    options = parser.parse_args()
    positions = random_positions(evaluation_tasks(options.scenario, options.episodes))
    print("| model | regret per decision | 95% interval | invalid | uniform play | positions |")
    print("|---|---|---|---|---|---|")
    for folder in options.models:
        model = TransformersModel.from_pretrained(str(folder), device="cpu")
        card = read_card(str(folder))
        prompts = PromptMap("direct") if card is None else PromptMap("direct", texts=card.texts)
        policy = LanguageAgentPolicy(model, prompts, Decoding(temperature=options.temperature))
        found = exact_regret(DirectAnswers(policy), positions)
        print(
            f"| {folder} | {found.mean:.3f} | {found.low:.3f} to {found.high:.3f} | {found.invalid:.1%} "
            f"| {found.uniform:.3f} | {found.positions} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
