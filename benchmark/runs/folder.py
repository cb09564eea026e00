"""A run folder on disk: ``manifest.json`` (what was asked for, with which versions) and ``episodes.jsonl``.

:meth:`RunFolder.append` hands every finished episode to the operating system before it returns, so that it survives a
killed process; for a power cut a file is synced at most every :data:`SYNC_SECONDS` and at the end. An interrupted write
can only leave the last line unfinished, which readers skip, and opening the folder for writing cuts off.
"""

import json
import mmap
import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from shlex import quote

from agents.common.files import draft_of, open_for_appending, replacing
from agents.common.locking import LOCK_NAME, FolderLock
from agents.common.reading import MOST_LINE, LineTooLongError, read_bytes, read_lines
from agents.common.redaction import Redactor
from agents.common.refusals import shown
from agents.episode import Episode
from benchmark.errors import StorageError, UsageError, storing, without_folder
from benchmark.runs.answers import ANSWERS_NAME
from benchmark.runs.manifest import MANIFEST_NAME, RUN_KIND, Manifest, read_manifest
from benchmark.runs.record import Key, key_of, opened_line, parse_line, sealed_line, to_line

EPISODES_NAME = "episodes.jsonl"
DAMAGED_NAME = "episodes.damaged.jsonl"
PROMPTS_NAME = "prompts.toml"
OWN_FILES = (MANIFEST_NAME, EPISODES_NAME, DAMAGED_NAME, PROMPTS_NAME, ANSWERS_NAME)
PROMPTS_FILES = "prompts*.toml"  # those of single agents, too

SYNC_SECONDS = 2.0  # the most that a power cut can cost


def check_file_place(file: str) -> None:
    """Refuse, by a StorageError, a file that can't or mustn't be written, before the work for it is done."""
    path = Path(file)
    if not file or path.is_dir():
        raise StorageError(f"can't write {file!r}: it names a folder and no file")
    if (why := without_folder(path)) is not None:
        raise StorageError(f"can't write {file}: {why}")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise StorageError(f"can't write {file}: Permission denied")
    if (path.parent / MANIFEST_NAME).exists() and (path.name in OWN_FILES or path.is_symlink()):
        what = "a link in the folder" if path.is_symlink() else "a file"
        raise StorageError(f"can't write {file}: it is {what} of the run in {path.parent}; choose another name")


class RunFolder:
    """The records of one run, for reading; :meth:`create` and :meth:`open_for_writing` also lock it and append."""

    def __init__(self, path: Path, manifest: Manifest, redactor: Redactor | None = None) -> None:
        self.path = path
        self.manifest = manifest
        self._redactor = redactor or Redactor.from_environment()
        self._lock: FolderLock | None = None
        self._file: int | None = None
        self._size = 0  # of what was there when it was opened, and of what was written since
        self._synced_at = time.monotonic()

    @classmethod
    def create(
        cls, path: Path, manifest: Manifest, redactor: Redactor, files: Mapping[str, bytes] | None = None
    ) -> "RunFolder":
        """Make a new run folder with further ``files`` (``{name: content}``), locked and open for appending.

        The manifest is written last, so a folder that has one is whole. What a process leaves that is killed before
        doesn't stand in the way of the next. A UsageError is raised if ``path`` isn't a folder or holds something.
        """
        folder = cls(path, manifest, redactor)
        files = {name: redactor.scrub_bytes(content) for name, content in (files or {}).items()}
        try:
            path.mkdir(parents=True, exist_ok=True)
            _refuse_strangers(path, files)  # before the lock is made: a folder that isn't ours stays as it is
            folder._lock = FolderLock(path, StorageError)
            _refuse_strangers(path, files)  # and again: another process may have made its run here just now
            for name, content in files.items():
                with replacing(path / name, "wb") as stream:
                    stream.write(content)
            folder.write_manifest()
            folder._open_file()
        except OSError as error:
            folder.close()
            kind = UsageError if isinstance(error, FileExistsError | NotADirectoryError) else StorageError
            raise kind(f"can't make the run folder {path}: {error.strerror}; choose another: --out DIR") from None
        except BaseException:
            folder.close()
            raise
        return folder

    @classmethod
    def open(cls, path: Path) -> "RunFolder":
        """Open a run folder or leaderboard entry for reading; raises as :func:`read_manifest`."""
        return cls(path, read_manifest(path))

    @classmethod
    def open_for_writing(cls, path: Path, redactor: Redactor) -> "RunFolder":
        """Open a run folder, lock it and cut off its unfinished last line; a UsageError if it isn't a run's."""
        manifest = read_manifest(path)
        if manifest["kind"] != RUN_KIND:
            raise UsageError(f"{path} is a leaderboard entry, not a run; only runs can be resumed")
        folder = cls(path, manifest, redactor)
        folder._lock = FolderLock(path, StorageError)
        try:
            folder._open_file()
            folder._cut_unfinished_line()
        except BaseException:
            folder.close()
            raise
        return folder

    @property
    def episodes_path(self) -> Path:
        return self.path / EPISODES_NAME

    def index(self) -> dict[Key, tuple[int, bool]]:
        """Return ``{key: (byte offset, whether it was scored)}`` of every record that :meth:`records` chooses."""
        index: dict[Key, tuple[int, bool]] = {}
        for offset, _, record in self.lines():
            key = key_of(record)
            if not index.get(key, (0, False))[1]:
                index[key] = offset, record.error is None
        return index

    def scored(self) -> set[Key]:
        return {key for key, (_, is_scored) in self.index().items() if is_scored}

    def records(self) -> Iterator[Episode]:
        """Yield the record of every episode, in the order of :meth:`located_records`."""
        return (record for _, record in self.located_records())

    def located_records(self) -> Iterator[tuple[int, Episode]]:
        """Yield ``(byte offset, record)`` of every episode: scored ones as written, then the last of those without.

        An episode that ended in a provider's error is played again by a resume; its new record then stands for it. One
        scored record is in memory at a time.
        """
        scored: set[Key] = set()
        unscored: dict[Key, tuple[int, Episode]] = {}
        for offset, _, record in self.lines():
            key = key_of(record)
            if record.error is not None:
                unscored[key] = offset, record
            elif key not in scored:
                scored.add(key)
                yield offset, record
        yield from (located for key, located in unscored.items() if key not in scored)

    def lines(self) -> Iterator[tuple[int, int, Episode]]:
        """Yield (byte offset, line number from 1, record) of every finished line, superseded records included.

        Raises a UsageError that names a line that isn't an episode record.
        """
        offset = number = 0
        self._require_episodes()
        try:
            with self.episodes_path.open("rb") as lines:
                for number, line in enumerate(read_lines(lines), start=1):
                    if not line.endswith(b"\n"):
                        return
                    yield offset, number, self.parse(line)
                    offset += len(line)
        except OSError as error:
            raise StorageError(f"can't read {self.episodes_path}: {error.strerror}") from None
        except LineTooLongError as error:
            raise UsageError(f"{self.episodes_path} line {number + 1} isn't an episode: {error}") from None
        except ValueError as error:
            own = self.manifest["kind"] == RUN_KIND
            repair = f"; set damaged lines aside and play them again: {resume_command(self.path)} --repair" * own
            raise UsageError(f"{self.episodes_path} line {number} isn't an episode: {error}{repair}") from None

    def records_at(self, offsets: Iterable[int]) -> Iterator[Episode]:
        """Yield the records whose lines begin at these bytes; raises a UsageError if there is no file any more."""
        self._require_episodes()
        with self.episodes_path.open("rb") as lines:
            for offset in offsets:
                lines.seek(offset)
                yield self.parse(lines.readline(MOST_LINE))

    def _require_episodes(self) -> None:
        # a pipe under this name would keep us waiting for ever
        if self.episodes_path.is_symlink() or not self.episodes_path.is_file():
            there = os.path.lexists(self.episodes_path)  # a resume couldn't write it either
            what = f"{self.episodes_path} isn't a file" if there else f"{self.path} has no file {EPISODES_NAME}"
            repair = f"; {'move it away, and ' * there}play its episodes again: {resume_command(self.path)}"
            raise UsageError(what + repair * (self.manifest["kind"] == RUN_KIND))

    def parse(self, line: bytes) -> Episode:
        """Return the record of a line of this folder, without secrets; raises a ValueError if it is none."""
        return self._known(parse_line(self._redactor.scrub_bytes(opened_line(line))))

    def _known(self, record: Episode) -> Episode:
        if labels := self.manifest.get("labels"):  # of a board that tells protocols apart
            record = replace(record, scenario=labels.get(record.scenario, ""))
        if record.scenario not in self.manifest["scenarios"]:
            raise ValueError(f"its scenario {shown(record.scenario)} isn't in the manifest")
        return record

    def append(self, record: Episode) -> None:
        """Write one finished episode; when this returns it survives the process.

        Raises:
            ValueError: no reader would take it for an episode; nothing is written.
            StorageError: the disk refuses, which harms nothing written before; or it isn't the run's file any more.
        """
        line = self._redactor.scrub_bytes(to_line(record))
        self._known(parse_line(line))  # a player's or a server's figures may be such that no reader would accept them
        line = sealed_line(line)
        assert self._file is not None, "the folder is open for reading only"
        before = os.fstat(self._file).st_size
        if before < self._size:
            self._require_place()
        try:
            written = 0
            while written < len(line):
                written += os.write(self._file, line[written:])
            self._size = before + len(line)
            if time.monotonic() - self._synced_at > SYNC_SECONDS:
                self.sync()
        except OSError as error:
            self._size = before
            with suppress(OSError):  # else the next process cuts it off
                os.ftruncate(self._file, before)
            raise StorageError(f"can't write to {self.episodes_path}: {error.strerror}") from None

    def sync(self) -> None:
        """Put what was written on the device; raises an OSError, or a StorageError if it isn't there (:meth:`lost`)."""
        assert self._file is not None, "the folder is open for reading only"
        os.fsync(self._file)
        self._synced_at = time.monotonic()
        self._require_place()

    def lost(self) -> str | None:
        """Report what happened to the file that is written, if another has its name now or it became shorter."""
        if self._file is None:
            return None
        own = os.fstat(self._file)
        try:
            there = os.lstat(self.episodes_path)
        except OSError:
            return f"{self.episodes_path} was moved or removed while the run wrote to it; put it back to go on"
        if not os.path.samestat(own, there):
            return f"{self.episodes_path} was replaced by another file while the run wrote to it"
        if own.st_size < self._size:
            return f"{self.episodes_path} was cut from {self._size} to {own.st_size} bytes while the run wrote to it"
        return None

    def _require_place(self) -> None:
        if (why := self.lost()) is not None:
            raise StorageError(why)

    def write_manifest(self) -> None:
        """Replace the manifest as a whole; raises a StorageError, also if another one has its place (:meth:`lost`)."""
        self._require_place()
        text = json.dumps(self.manifest, indent=1, ensure_ascii=False, default=str) + "\n"
        write_atomically(self.path / MANIFEST_NAME, self._redactor.scrub(text))

    def close(self) -> None:
        if self._file is not None:
            with suppress(OSError):  # a full disk has been reported by the write that met it
                os.fsync(self._file)
            os.close(self._file)
            self._file = None
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def __enter__(self) -> "RunFolder":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def set_damaged_lines_aside(self) -> int:
        """Move every line that isn't an episode to :data:`DAMAGED_NAME`, and return how many there were.

        Their episodes then count as not played. The lines are on the device before they are taken out.
        """
        assert self._file is not None, "the folder is open for reading only"
        damaged: list[bytes] = []
        try:
            with self.episodes_path.open("rb") as lines, replacing(self.episodes_path, "wb") as kept:
                for line in read_lines(lines):
                    try:
                        self.parse(line)
                        kept.write(line)
                    except ValueError:
                        damaged.append(line)
                if damaged:
                    with os.fdopen(open_for_appending(self.path / DAMAGED_NAME), "ab") as aside:
                        aside.writelines(damaged)
                        aside.flush()
                        os.fsync(aside.fileno())
        except OSError as error:
            raise StorageError(f"can't write {error.filename or self.path}: {error.strerror}") from None
        except LineTooLongError as error:
            raise UsageError(f"{self.episodes_path} has a line that isn't an episode: {error}") from None
        os.close(self._file)  # it is the old file, which has no name any more
        self._file = None
        self._open_file()
        return len(damaged)

    def _open_file(self) -> None:
        try:
            self._file = open_for_appending(self.episodes_path)
        except OSError as error:
            self.close()
            raise StorageError(f"can't write {self.episodes_path}: {error.strerror}") from None
        self._size = os.fstat(self._file).st_size

    def _cut_unfinished_line(self) -> None:
        if not self._size:
            return
        assert self._file is not None
        with mmap.mmap(self._file, self._size, access=mmap.ACCESS_READ) as content:
            end = content.rfind(b"\n", max(0, self._size - MOST_LINE)) + 1
        if self._size - end > MOST_LINE:
            raise UsageError(f"the last line of {self.episodes_path} isn't an episode: {LineTooLongError()}")
        if end < self._size:
            os.ftruncate(self._file, end)
            self._size = end


def folder_name(agent: str) -> str:
    """Return the agent's name as a folder's: ``openai:org/model`` becomes ``openai-org-model``."""
    return re.sub(r"[^\w.+@-]+", "-", agent).strip("-.") or "agent"


def resume_command(path: Path) -> str:
    """Return the command that resumes a run."""
    return f"textbench resume {quote(str(path))}"


def _refuse_strangers(path: Path, files: Mapping[str, bytes]) -> None:
    """Let nothing be overwritten but what a run leaves that was killed before its manifest was whole."""
    if (path / MANIFEST_NAME).exists():
        raise UsageError(f"{path} already holds a run; choose another --out")
    for entry in sorted(path.iterdir()):
        name = entry.name
        kept = name in files and entry.is_file() and not entry.is_symlink() and read_bytes(entry) == files[name]
        if not (kept or name == LOCK_NAME or draft_of(entry) in (MANIFEST_NAME, *files)):
            raise UsageError(f"{path} isn't empty (it holds {name!r}) and isn't a run; choose another --out")


def write_atomically(file: Path, text: str) -> None:
    """Write a file so that a crash leaves the old one or the new one, never half of one; raises a StorageError."""
    with storing(file), replacing(file) as stream:
        stream.write(text)
