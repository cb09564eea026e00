"""The trainings that ship as files: found by name as well as by path.

In a clone they are ``configs/NAME.toml``. A wheel has the same files in ``agents/msgrpo/configs``, where
``pyproject.toml`` puts them: documents name a folder at the top of the repository, and a package can't have files
above itself.
"""

from pathlib import Path

from textgames.names import did_you_mean

_IN_WHEEL = Path(__file__).parents[1] / "configs"
_IN_CLONE = Path(__file__).parents[3] / "configs"


def packaged_recipes() -> dict[str, Path]:
    """``{name: file}`` of the trainings that ship."""
    folder = _IN_WHEEL if _IN_WHEEL.is_dir() else _IN_CLONE
    return {file.stem: file for file in sorted(folder.glob("*.toml"))}


def recipe_path(given: str | Path) -> Path:
    """The file at a path; where there is none, the recipe that ships under that name.

    A name is ``tiny-frozen-lake``, with or without ``.toml``, or ``configs/tiny-frozen-lake.toml`` as documents have
    it, so that what is written for a clone also works where there is only the installed package.
    """
    path = Path(given)
    if path.is_file() or path.parent not in (Path(), Path("configs")):
        return path
    return packaged_recipes().get(path.name.removesuffix(".toml"), path)


def no_such_recipe(given: str | Path) -> str:
    """What to say behind the name of a file that there isn't: the nearest recipe, and all of them."""
    known = tuple(packaged_recipes())
    return f"{did_you_mean(Path(given).name.removesuffix('.toml'), known)}; by name there are {', '.join(known)}"
