"""Count the faults that the tests find: forty mutants over all packages, each an edit of one place.

    python -m research.house.mutants [--only NAME ...] [--jobs N] [--out mutants.json]

A mutant of ``mutants.toml`` replaces a text of a ``file`` that occurs there once (``old``) by another one (``new``). It
has the fault that a user would meet (``what``) and the ``tests`` that stand for that code. Each mutant is applied to a
copy of the last commit, and its tests are run up to the first failure. A mutant is *killed* by a test that fails with
it and passes without it; it has *survived* if all tests pass; and it is *broken* if its file doesn't compile or can't
be imported, or if its tests fail without it too or don't end. A result in ``--out`` is used again while the commit and
the mutant are the same.
"""

import argparse
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
LIST = "research/house/mutants.toml"
SECONDS = 1200.0  # that the tests of one mutant may take
Result = dict[str, str]  # "outcome", and "by": the test that killed the mutant, or why it is broken


class Mutant(NamedTuple):
    """One edit, and the tests that stand for the code that it is made in."""

    name: str
    what: str
    file: str
    old: str
    new: str
    tests: Sequence[str]

    def applied(self, text: str) -> str:
        """Return the text of the file with the edit; raise a ValueError if the old text doesn't occur exactly once."""
        if (times := text.count(self.old)) != 1:
            raise ValueError(
                f"the mutant {self.name!r}: its old text occurs {times} times in {self.file}, and once is accepted; "
                f"edit {LIST} with the code"
            )
        return text.replace(self.old, self.new)


def read_mutants() -> list[Mutant]:
    """Read the list of mutants."""
    return [Mutant(name, **row) for name, row in tomllib.loads((ROOT / LIST).read_text(encoding="utf-8")).items()]


def run_tests(copy: Path, tests: Sequence[str]) -> tuple[int, str]:
    """Run tests in a copy up to the first failure, named ones even if they are slow; return exit code and output."""
    path = os.pathsep.join(filter(None, [str(copy), os.environ.get("PYTHONPATH")]))
    # a mutant of the same size, made in the same second, shares the sound file's bytecode
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    environment |= {"PYTHONPATH": path, "TEXTBENCH_CACHE_DIR": f"{copy}.cache"}
    named = ["-m", ""] if all("::" in test for test in tests) else []
    command = [sys.executable, "-m", "pytest", "-x", "-q", "--tb=no", "-p", "no:cacheprovider", *named, *tests]
    with subprocess.Popen(
        command, cwd=copy, env=environment, text=True, start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    ) as process:  # fmt: skip
        try:
            printed, _ = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # with everything that the tests have started
            return -1, f"its tests don't end within {SECONDS:.0f} s"
    return process.returncode, printed


def try_mutant(mutant: Mutant, copy: Path) -> Result:
    """Apply a mutant to a copy, run its tests, and put the file back."""
    file = copy / mutant.file
    sound = file.read_text(encoding="utf-8")
    changed = mutant.applied(sound)
    try:
        compile(changed, mutant.file, "exec")
        file.write_text(changed, encoding="utf-8")
        code, printed = run_tests(copy, mutant.tests)
    except SyntaxError as error:
        return {"outcome": "broken", "by": f"it doesn't compile: {error}"}
    finally:
        file.write_text(sound, encoding="utf-8")
    if code == 0:
        return {"outcome": "survived", "by": ""}
    if code != 1 or (failed := re.search(r"(?m)^(?:FAILED|ERROR) (\S+?::.+?)(?: - .*)?$", printed)) is None:
        return {"outcome": "broken", "by": (printed.strip().splitlines() or ["pytest printed nothing"])[-1]}
    if run_tests(copy, [failed[1]])[0] != 0:
        return {"outcome": "broken", "by": f"{failed[1]} doesn't pass without it"}
    return {"outcome": "killed", "by": failed[1]}


def try_mutants(mutants: Sequence[Mutant], jobs: int, out: Path) -> dict[str, Result]:
    """Try every mutant that ``out`` has no result of, ``jobs`` at a time, and return the results of all."""
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    key = {each.name: hashlib.sha256(f"{commit}{each}".encode()).hexdigest()[:16] for each in mutants}
    results: dict[str, Result] = json.loads(out.read_text(encoding="utf-8")) if out.exists() else {}
    waiting = [each for each in mutants if results.get(each.name, {}).get("key") != key[each.name]]
    copies = SimpleQueue[Path]()

    def work(mutant: Mutant) -> Result:
        copy = copies.get()
        try:
            return try_mutant(mutant, copy) | {"key": key[mutant.name]}
        finally:
            copies.put(copy)

    with tempfile.TemporaryDirectory(prefix="mutants-", ignore_cleanup_errors=True) as folder:
        for number in range(min(jobs, len(waiting))):
            copies.put(Path(folder, str(number)))
            subprocess.run(["git", "clone", "-q", "--shared", ROOT, Path(folder, str(number))], check=True)
        with ThreadPoolExecutor(jobs) as pool:
            try:
                for each, found in zip(waiting, pool.map(work, waiting), strict=True):
                    results[each.name] = found
                    print(f"{each.name}: {found['outcome']} {found['by']}", flush=True)
                    out.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n", encoding="utf-8")
            finally:
                pool.shutdown(cancel_futures=True)
    return {each.name: results[each.name] for each in mutants}


def main() -> int:
    """Try the mutants and print how many were killed; the exit code is 1 if one is broken."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    mutants = {each.name: each for each in read_mutants()}
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=mutants, default=[*mutants], help="only these")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="mutants at a time")
    parser.add_argument("--out", type=Path, default=Path("mutants.json"), metavar="FILE", help="the results")
    args = parser.parse_args()
    try:
        for name in args.only:  # all before the first is tried
            mutants[name].applied((ROOT / mutants[name].file).read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        parser.error(str(error))
    results = try_mutants([mutants[name] for name in args.only], args.jobs, args.out)
    outcomes = [each["outcome"] for each in results.values()]
    print(f"{outcomes.count('killed')} of {len(outcomes)} killed, {outcomes.count('survived')} survived")
    return int("broken" in outcomes)


if __name__ == "__main__":
    sys.exit(main())
