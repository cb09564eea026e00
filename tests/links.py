"""Links that a stranger has put into a folder, under every name that we write or remove there."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

OUTSIDE = Path("outside")
"""What belongs to the user: nothing of it may change."""

TARGETS = ("diary", "letters", "not-there", "letters/not-there")
"""A file, a folder, and two that would be made."""


def drafts_of(name: str) -> list[str]:
    """The names that drafts of a file or folder had when they could be foreseen, of this process."""
    return [f".{name}.{os.getpid()}", f".writing-{name}"]


def whats_mine() -> dict[str, bytes | None]:
    """All that is outside, with its content."""
    if not OUTSIDE.exists():
        (OUTSIDE / "letters/iteration-000009").mkdir(parents=True)
        (OUTSIDE / "diary").write_text("mine\nwithout an end")
        for number in range(4):
            (OUTSIDE / f"letters/iteration-00000{number}").mkdir()
            (OUTSIDE / f"letters/iteration-00000{number}/trainer_state.pt").write_text("mine")
    return {str(path): path.read_bytes() if path.is_file() else None for path in sorted(OUTSIDE.rglob("*"))}


def planted(whole: Path, names: list[str], targets: tuple[str, ...]) -> Iterator[tuple[Path, str]]:
    """A copy of a folder with a link under each name to each target, one after the other; ``folder, what it has``.

    When the caller has used it, nothing that is the user's has changed.
    """
    mine = whats_mine()
    for name in names:
        for target in targets:
            for make in (link, hard_link):
                folder = Path(shutil.copytree(whole, "theirs", symlinks=True))
                if make(folder / name, OUTSIDE / target):
                    yield folder, f"{name} -> {target}"
                    assert whats_mine() == mine, (make.__name__, name, target)
                shutil.rmtree(folder)


def link(path: Path, target: Path) -> bool:
    """Make a link in place of a file or folder."""
    make_room(path)
    path.symlink_to(target.absolute())
    return True


def hard_link(path: Path, target: Path) -> bool:
    """Give the user's file a second name; folders can have none."""
    if not target.is_file():
        return False
    make_room(path)
    os.link(target, path)
    return True


def make_room(path: Path) -> None:
    """Remove what is there, and make the folders above."""
    path.parent.mkdir(parents=True, exist_ok=True)
    remove: Callable[[Path], object] = shutil.rmtree if path.is_dir() and not path.is_symlink() else os.unlink
    if os.path.lexists(path):
        remove(path)
