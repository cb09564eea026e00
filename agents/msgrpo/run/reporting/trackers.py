"""Where a run's metrics go besides ``metrics.jsonl``: TensorBoard, Weights & Biases and what else accelerate can track.

``config.trackers -> accelerate's trackers -> the same values under the same names in each of them``. What is known of a
run in a tracker (its id) is kept in ``trackers.json`` in the run's folder, so that a resumed run goes on in it.
"""

import json
import os
import secrets
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import fields
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from agents.common.files import replacing
from agents.common.reading import read_json
from agents.common.redaction import public_url
from agents.msgrpo.configuration.config import MSGRPOConfig
from agents.msgrpo.errors import ConfigError
from textgames.extras import install_command

KNOWN = "trackers.json"

EXTRAS = {"tensorboard": "train", "wandb": "wandb"}
"""The extras that trackers are in; the others have to be installed by their own names."""


class Trackers:
    """The trackers of one run, which are open; without any it does nothing.

    Args:
        opened: accelerate's trackers by name.
        say: is told where a tracker has failed.
    """

    def __init__(self, opened: Mapping[str, Any], say: Callable[[str], None] = print) -> None:
        self._opened, self._say = dict(opened), say

    def log(self, values: Mapping[str, float], step: int) -> None:
        """Send figures of an iteration to all of them.

        A tracker that fails is left out from then on: days of training are worth more than its curves, and
        ``metrics.jsonl`` has everything.
        """
        for name, tracker in list(self._opened.items()):
            try:
                tracker.log(dict(values), step=step)
            except Exception as error:  # noqa: BLE001 - somebody else's client, disk or server
                del self._opened[name]
                self._say(f"the tracker {name} has failed and gets no more metrics ({type(error).__name__}: {error})")

    def close(self) -> None:
        """Let every one finish what it has to write or send."""
        for tracker in self._opened.values():
            tracker.finish()
        self._opened.clear()


def open_trackers(
    config: MSGRPOConfig, out: Path, first: int, say: Callable[[str], None], *, quiet: bool = False
) -> Trackers:
    """Open the trackers of a config, in the process that writes.

    Args:
        config: its ``trackers``, and all else for them to show.
        out: the run's folder, which exists.
        first: iterations done before; more than 0 goes on with the run of before, where the tracker can.
        say: as in :class:`Trackers`.
        quiet: nothing in the terminal, as far as a tracker can be told so.

    Raises:
        ModuleNotFoundError: a tracker's package isn't installed; the message has the command.
        ConfigError: a tracker can't be started (no account, no network).
    """
    opened: dict[str, Any] = {}
    for name in dict.fromkeys(config.trackers):
        try:
            opened[name] = _start(name, _arguments(name, config, out, first, quiet))
            if name != "tensorboard" or first == 0:  # TensorBoard would show every resume as one more experiment
                opened[name].store_init_configuration(_plain(config))
        except BaseException:
            Trackers(opened, say).close()
            raise
    return Trackers(opened, say)


def check_trackers(config: MSGRPOConfig) -> None:
    """Say before a model is loaded that a tracker's package isn't installed.

    Raises:
        ModuleNotFoundError: the message has the command.
    """
    for name in config.trackers:
        if find_spec(name) is None and not (name == "tensorboard" and find_spec("tensorboardX")):
            raise _not_installed(name)


def _not_installed(name: str) -> ModuleNotFoundError:
    advice = install_command(EXTRAS[name]) if name in EXTRAS else f"pip install {name}"
    return ModuleNotFoundError(
        f"the tracker {name!r} needs the package {name}, which is not installed: {advice}", name=name
    )


def _start(name: str, arguments: dict[str, Any]) -> Any:
    try:
        from accelerate import PartialState
        from accelerate.tracking import LOGGER_TYPE_TO_CLASS
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"trackers need accelerate, which is not installed: {install_command('train')}", name="accelerate"
        ) from error
    if name not in LOGGER_TYPE_TO_CLASS:
        raise ConfigError(
            f"trackers = {name!r}: this version of accelerate has {', '.join(map(str, LOGGER_TYPE_TO_CLASS))}"
        )
    PartialState()  # accelerate's trackers ask it which process they are in
    try:
        tracker = LOGGER_TYPE_TO_CLASS[name](**arguments)
        # before accelerate 1.9 a tracker was started by being made
        getattr(tracker, "start", lambda: None)()
    except ModuleNotFoundError as error:
        raise _not_installed(name) from error
    except Exception as error:
        offline = "; WANDB_MODE=offline keeps its files in the run's folder" if name == "wandb" else ""
        raise ConfigError(f"the tracker {name!r} can't be started: {error}{offline}") from error
    return tracker


def _arguments(name: str, config: MSGRPOConfig, out: Path, first: int, quiet: bool) -> dict[str, Any]:
    """What a tracker is opened with: its project, the run's name, and what lets it go on with a run."""
    title = config.tracker_run or out.resolve().name
    if name == "tensorboard":
        return {"run_name": "tensorboard", "logging_dir": str(out), "purge_step": first + 1}
    if name == "wandb":
        if quiet:  # its setting of this name is heard by a part of it only
            os.environ.setdefault("WANDB_SILENT", "true")
        return {
            "run_name": config.tracker_project,  # accelerate's name for the project
            "name": title,
            "id": _known_id(out, name),
            "resume": "allow",
            "dir": str(out),
            # what the terminal shows is redrawn, which is nothing to keep
            "settings": {"console": "off"},
        }
    if name == "trackio":
        return {"run_name": config.tracker_project, "name": title, "resume": "allow"}
    if name == "aim":  # the other one that writes into a folder
        return {"run_name": title, "logging_dir": str(out)}
    return {"run_name": config.tracker_project}


def _known_id(out: Path, name: str) -> str:
    """The run's id in a tracker: that of before, else a new one, which is kept."""
    file = out / KNOWN
    known: dict[str, Any] = {}
    with suppress(FileNotFoundError, ValueError):
        known = read_json(file)
    if name not in known:
        known[name] = {"id": secrets.token_hex(4)}
        with replacing(file) as stream:
            stream.write(json.dumps(known, indent=1) + "\n")
    return str(known[name]["id"])


def _plain(config: MSGRPOConfig) -> dict[str, Any]:
    """The settings as trackers show them: numbers, truths and texts, without the secrets of a server's address."""
    return {one.name: _shown(getattr(config, one.name)) for one in fields(config)}


def _shown(value: Any) -> Any:
    if isinstance(value, str):
        return public_url(value) if "://" in value else value
    if isinstance(value, tuple | list):
        return ", ".join(str(_shown(one)) for one in value)
    return json.dumps(value) if isinstance(value, dict) else value
