"""``python -m textbench.integrations.trl``: train a model on a game with TRL's ``GRPOTrainer``."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from agents.common.files import check_writable, refusal
from agents.common.settings import option, place, read_words, settings, switch
from agents.common.terminal import plain_streams
from textgames.extras import missing_packages

if TYPE_CHECKING:
    from trl import GRPOTrainer

TINY = Path(__file__).parents[3] / "agents" / "tiny" / "weights" / "tiny"


@settings
class Train:
    """Train a model on a game with TRL's GRPOTrainer."""

    way: Literal["steps", "calls"] = place("WAY")
    """steps: every step a sample of its own (rollout_func); calls: an episode is a conversation of tool calls
    (environment_factory)"""
    scenario: str = option("frozen-lake", "NAME", "default frozen-lake")
    model: str = option(str(TINY), "MODEL", "a folder or a repository (default: tiny)")
    out: Path = option(Path("runs/trl"), "DIR", "where the model goes (default runs/trl)")
    mode: str = option("think", "MODE", "think (default), direct, or calls for models that call tools by themselves")
    opponents: str = option("random", "SPEC", 'the other players: an agent (default random) or, with steps, "self"')
    format_penalty: float = option(1.0, "X", "of an invalid response", ge=0)
    iterations: int = option(3, "N", "updates of the model", ge=1)
    starts: int = option(64, "N", "layouts in the dataset", ge=1)
    group: int = option(8, "N", "samples of one start, num_generations", ge=2)
    batch: int = option(32, "N", "samples of an iteration", ge=2)
    steps_per_episode: int = option(1, "N", "samples of one episode", ge=1)
    max_tokens: int = option(256, "N", "of a completion", ge=1)
    learning_rate: float = option(1e-3, "X", "for the tiny model", gt=0)
    temperature: float = option(1.0, "T", "of sampling", gt=0)
    seed: int = option(0, "N", "of starts and sampling", ge=0, le=2**32 - 1)
    cpu: bool = switch("use no GPU")


def make_trainer(options: Train) -> "GRPOTrainer":
    """Return the trainer that the options describe.

    Raises:
        ValueError: no such scenario, mode, agent or setting, or numbers that don't go together.
    """
    os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")  # TRL says of both ways that they may change
    from textbench.integrations.trl import game_environment, read_actions_as_calls, start_dataset
    from textbench.integrations.trl.rollouts import SELF_PLAY

    played: dict[str, Any] = {"format_penalty": options.format_penalty}
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
        card = read_card(options.model)  # a model that was made for prompts of its own keeps those
        own = card is not None and options.mode in card.texts.response
        rollouts = StepRollouts(
            prompt_map=PromptMap(options.mode, texts=card.texts) if card and own else PromptMap(options.mode),
            steps_per_episode=options.steps_per_episode,
            opponents=options.opponents,
            seed=options.seed,
            **played,
        )
        ways = {"rollout_func": rollouts, "reward_funcs": episode_return}
    else:
        ways = {
            "environment_factory": game_environment(
                options.scenario, mode=options.mode, opponents=options.opponents, seed=options.seed, **played
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
    options = read_words(Train, arguments, "python -m textbench.integrations.trl")
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


if __name__ == "__main__":
    sys.exit(main())
