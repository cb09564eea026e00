"""``python -m textbench.integrations.trl``: train a model on a game with TRL's ``GRPOTrainer``."""

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agents.common.arguments import Parser, real_number, whole_number
from agents.common.files import check_writable, refusal
from agents.common.terminal import plain_streams
from textgames.extras import missing_packages

if TYPE_CHECKING:
    from trl import GRPOTrainer

_TINY = Path(__file__).parents[3] / "agents" / "tiny" / "weights" / "tiny"


def make_trainer(options: argparse.Namespace) -> "GRPOTrainer":
    """Return the trainer that the options describe.

    Raises:
        ValueError: no such scenario, mode, agent or setting, or numbers that don't go together.
    """
    os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")  # TRL says of both ways that they may change
    from textbench.integrations.trl import game_environment, read_actions_as_calls, start_dataset
    from textbench.integrations.trl.rollouts import SELF_PLAY

    settings = {"format_penalty": options.format_penalty}
    dataset = start_dataset(options.scenario, options.starts)  # what is wrong with it is said before TRL is imported
    if options.way == "calls" and options.opponents == SELF_PLAY:
        raise ValueError("--opponents self takes steps: with calls an episode is one player's conversation")
    if options.way == "steps" and options.group % options.steps_per_episode:
        raise ValueError(
            f"an episode gives --steps-per-episode {options.steps_per_episode} samples of its group, so --group must "
            f"be a multiple of that, got {options.group}"
        )

    from transformers import AutoModelForCausalLM, AutoTokenizer
    from trl import GRPOConfig, GRPOTrainer

    from agents.models.local.loading.card import read_card
    from agents.prompt import PromptMap
    from textbench.integrations.trl import StepRollouts, episode_return

    tokenizer = AutoTokenizer.from_pretrained(options.model)
    ways: dict[str, Any]
    if options.way == "steps":
        card = read_card(options.model)  # a model that was made for prompts of its own goes on with those
        own = card is not None and options.mode in card.texts.response
        rollouts = StepRollouts(
            prompt_map=PromptMap(options.mode, texts=card.texts) if card and own else PromptMap(options.mode),
            steps_per_episode=options.steps_per_episode,
            opponents=options.opponents,
            seed=options.seed,
            **settings,
        )
        ways = {"rollout_func": rollouts, "reward_funcs": episode_return}
    else:
        ways = {
            "environment_factory": game_environment(
                options.scenario, mode=options.mode, opponents=options.opponents, seed=options.seed, **settings
            )
        }
        if options.mode != "calls":
            read_actions_as_calls(tokenizer)
    config = GRPOConfig(
        output_dir=str(options.out),
        max_steps=options.iterations,
        per_device_train_batch_size=options.batch,
        num_generations=options.group,
        max_completion_length=options.max_tokens,
        learning_rate=options.learning_rate,
        temperature=options.temperature,
        seed=options.seed,
        logging_steps=1,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        use_cpu=options.cpu,
        bf16=False,
    )
    model = AutoModelForCausalLM.from_pretrained(options.model, use_safetensors=True)
    return GRPOTrainer(model, args=config, train_dataset=dataset, processing_class=tokenizer, **ways)


@plain_streams()
def main(arguments: list[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    options = _parser().parse_args(arguments)
    if (missing := missing_packages("trl", "datasets", "torch", "transformers", extra="trl")) is not None:
        print(f"error: not installed: {missing}", file=sys.stderr)
        return 2
    try:
        check_writable(options.out)
        trainer = make_trainer(options)
    except (ValueError, OSError) as error:
        print(f"error: {refusal(error) if isinstance(error, OSError) else error}", file=sys.stderr)
        return 2
    from transformers import PrinterCallback

    from agents.models.local.loading.card import write_card, write_chat_template
    from textbench.integrations.trl import StepRollouts

    trainer.remove_callback(PrinterCallback)
    trainer.add_callback(_progress())
    trainer.train()
    trainer.save_model(str(options.out))
    if isinstance(rollouts := trainer.rollout_func, StepRollouts):  # it is played with the prompts that it learnt from
        write_card(options.out, modes=[rollouts.prompt_map.mode], texts=rollouts.prompt_map.texts)
        write_chat_template(options.out, trainer.processing_class)
    print(f"saved: {options.out}")
    return 0


def _progress() -> Any:
    from transformers import TrainerCallback

    class Progress(TrainerCallback):
        """One line for each iteration."""

        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **rest: Any) -> None:
            shown = ("reward", "reward_std", "success", "episode_length", "invalid_rate", "tools/call_frequency")
            if logs and "reward" in logs:
                told = "  ".join(f"{name} {float(logs[name]):.3f}" for name in shown if name in logs)
                print(f"iteration {state.global_step}/{state.max_steps}  {told}", flush=True)

    return Progress


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog="python -m textbench.integrations.trl", description=__doc__.partition(": ")[2])
    parser.add_argument(
        "way",
        choices=("steps", "calls"),
        help="steps: every step a sample of its own (rollout_func); calls: an episode is a conversation of tool calls "
        "(environment_factory)",
    )
    parser.add_argument("--scenario", default="frozen-lake")
    parser.add_argument("--model", default=str(_TINY), help="a folder or a repository (default: tiny)")
    parser.add_argument("--out", type=Path, default=Path("runs/trl"), help="where the model goes (default runs/trl)")
    parser.add_argument(
        "--mode",
        default="think",
        help="think, direct, or calls for models that call tools by themselves (default think)",
    )
    parser.add_argument(
        "--opponents", default="random", help='the other players: an agent or, with steps, "self" (default random)'
    )
    parser.add_argument(
        "--format-penalty", type=real_number(0), default=1.0, help="of an invalid response (default 1.0)"
    )
    parser.add_argument("--iterations", type=whole_number(1), default=3, help="default 3")
    parser.add_argument("--starts", type=whole_number(1), default=64, help="layouts in the dataset (default 64)")
    parser.add_argument(
        "--group", type=whole_number(2), default=8, help="samples of one start, num_generations (default 8)"
    )
    parser.add_argument("--batch", type=whole_number(2), default=32, help="samples of an iteration (default 32)")
    parser.add_argument(
        "--steps-per-episode", type=whole_number(1), default=1, help="samples of one episode (default 1)"
    )
    parser.add_argument("--max-tokens", type=whole_number(1), default=256, help="of a completion (default 256)")
    parser.add_argument(
        "--learning-rate", type=real_number(0, above=True), default=1e-3, help="default 1e-3, for the tiny model"
    )
    parser.add_argument("--temperature", type=real_number(0, above=True), default=1.0, help="default 1.0")
    parser.add_argument("--seed", type=whole_number(0, 2**32 - 1), default=0)
    parser.add_argument("--cpu", action="store_true", help="use no GPU")
    return parser


if __name__ == "__main__":
    sys.exit(main())
