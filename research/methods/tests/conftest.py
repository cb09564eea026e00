"""The games, models and trainers of the trainer's own tests."""

from tests.agents.msgrpo.conftest import _registered_methods, make_llama, make_trainer, prompt_file, tokenizer

__all__ = ["_registered_methods", "make_llama", "make_trainer", "prompt_file", "tokenizer"]
