"""What the tests of the taskset share: an evaluation as ``vf-eval`` runs it, in this process, and a server."""

import asyncio
from pathlib import Path
from typing import Any

import verifiers.v1 as vf
from verifiers.v1.cli.eval.runner import run_eval
from verifiers.v1.configs.cli.eval import EvalConfig


def config_of(url: str, **given: Any) -> EvalConfig:
    """The configuration that ``vf-eval textbench`` makes of its options."""
    env = {**given.pop("env", {}), "taskset": {"id": "textbench", **given.pop("taskset", {})}}
    client = {"base_url": url, "api_key_var": "NO_KEY"}
    settings = {"model": "local", "client": client, "env": env, "push": False, "rich": None, **given}
    return EvalConfig.model_validate(settings)


def evaluate(url: str, folder: Path, **given: Any) -> list[vf.Episode]:
    """Play the taskset against a server; the options are those of :func:`config_of`."""
    return asyncio.run(run_eval(config_of(url, output_dir=folder, **given)))
