"""``python -m textbench.integrations.nemo_gym SCENARIO --out FOLDER``: a resources server's folder for NeMo Gym."""

import json
import re
import sys
from pathlib import Path

from agents.common.files import replacing_folder
from agents.common.settings import REQUIRED, option, place, read_words, settings
from agents.common.terminal import plain_streams
from agents.episode import EpisodeTask
from agents.loop.live import environment_of
from textbench.integrations.starts import list_starts

APP = """from textbench.integrations.nemo_gym import TextbenchServer

if __name__ == "__main__":
    TextbenchServer.run_webserver()
"""
REQUIREMENTS = "-e nemo-gym[dev] @ ../../\ntextbench\n"
CONFIG = """{name}:
  resources_servers:
    {name}:
      entrypoint: app.py
      domain: games
      verified: false
      description: The text game {scenario}.
      value: Multi-turn decisions whose optimum is known
      scenario: {scenario}
      settings: {{}}
{name}_gymnasium_agent:
  responses_api_agents:
    gymnasium_agent:
      entrypoint: app.py
      resources_server:
        type: resources_servers
        name: {name}
      model_server:
        type: responses_api_models
        name: policy_model
      max_steps: {max_steps}
      datasets:
      - name: example
        type: example
        jsonl_fpath: resources_servers/{name}/data/example.jsonl
      - name: train
        type: train
        jsonl_fpath: resources_servers/{name}/data/train.jsonl
        license: MIT
"""
EXAMPLES = 5
"""Rows of ``example.jsonl``, of which NeMo Gym wants five."""


@settings
class Folder:
    """Write a resources server of NeMo Gym that plays a scenario: its application, configuration and data."""

    scenario: str = place("SCENARIO", "a scenario's name, such as frozen-lake")
    out: str = option(REQUIRED, "FOLDER", "the folder, such as resources_servers/textbench")
    starts: int = option(512, "N", "rows of train.jsonl, each a start for one group of rollouts", ge=1, le=10_000)


def write_folder(folder: Path, scenario: str, starts: int = 512) -> None:
    """Write the server's folder, whose name the server has; its place is ``resources_servers/NAME`` of NeMo Gym.

    Raises:
        ValueError: no such scenario, more starts than training seeds, or a name that YAML and a path can't have.
        OSError: the folder can't be written.
    """
    name = folder.resolve().name
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise ValueError(f"the folder's name is the server's: small letters, digits and _, got {name!r}")
    agent = {"type": "responses_api_agents", "name": f"{name}_gymnasium_agent"}
    rows = [  # the game writes the prompt, which is empty here
        json.dumps({"responses_create_params": {"input": []}, **start._asdict(), "agent_ref": agent}) + "\n"
        for start in list_starts(scenario, starts)
    ]
    max_steps = environment_of(EpisodeTask.of(scenario, 0)).rules.max_steps
    with replacing_folder(folder, own=("app.py", "requirements.txt", "configs", "data")) as draft:
        (draft / "configs").mkdir()
        (draft / "data").mkdir()
        (draft / "app.py").write_text(APP)
        (draft / "requirements.txt").write_text(REQUIREMENTS)
        config = CONFIG.format(name=name, scenario=scenario, max_steps=max_steps or 10_000)
        (draft / "configs" / f"{name}.yaml").write_text(config)
        for file, some in (("train", rows), ("example", rows[:EXAMPLES])):
            (draft / "data" / f"{file}.jsonl").write_text("".join(some))


@plain_streams()
def main() -> int:
    """Write the folder that the command names, and print how it is served."""
    asked = read_words(Folder, None, "python -m textbench.integrations.nemo_gym")
    try:
        write_folder(Path(asked.out), asked.scenario, asked.starts)
    except (ValueError, OSError) as error:
        print(f"textbench: {error}", file=sys.stderr)
        return 2
    name = Path(asked.out).resolve().name
    print(f"gym env start --resources-server {name} --model-type vllm_model")
    return 0


if __name__ == "__main__":
    sys.exit(main())
