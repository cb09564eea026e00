"""The process in which a program runs: it locks itself in for good, then answers calls. Only the sandbox starts it.

It imports the standard library alone, so that nothing of this project is in its memory; ``sandbox.py`` says what holds
it. Lines of JSON come in on standard input and go out on what was standard output::

    {"source": ..., "harness": ..., "seconds": ..., "memory": ..., "weak": ...}
        -> [0, "locked", names of locks] or [0, "refused", why], then ["functions", "value", names of functions]
    [digest, function, arguments]
        -> [digest, "value", what it returned] or [digest, "error", why it didn't]

A *harness* is a trusted program beside the untrusted one: a call is then one of its functions, which gets the program's
names as its first argument.
"""

import builtins
import ctypes
import decimal
import importlib
import json
import os
import platform
import random
import signal
import struct
import sys
from collections.abc import Callable
from functools import partial
from types import CodeType, ModuleType
from typing import Any

MODULES = (
    *("__future__", "abc", "array", "bisect", "cmath", "collections", "collections.abc", "copy", "dataclasses"),
    *("decimal", "enum", "fractions", "functools", "heapq", "itertools", "json", "math", "numbers", "operator"),
    *("queue", "random", "re", "statistics", "string", "textwrap", "types", "typing"),
)
"""What a program may import. All of it is loaded before the door is shut, and nothing can be loaded after."""

HIDDEN = ("open", "input", "breakpoint")  # functions that could do nothing here but raise an error
LONGEST_ERROR = 500  # characters
NAME = "program"  # of the program's module

# ------------------------------------------------------------------------------------------------ locks

# The system calls that work once the door is shut: reading and writing what is open already, memory, the clock, random
# bytes, the alarm that a call runs under, and the end. Their numbers on x86_64 and on aarch64.
_CALLS = {
    **{"read": (0, 63), "write": (1, 64), "mmap": (9, 222), "mprotect": (10, 226), "munmap": (11, 215)},
    **{"brk": (12, 214), "mremap": (25, 216), "madvise": (28, 233), "futex": (202, 98), "getrandom": (318, 278)},
    **{"clock_gettime": (228, 113), "gettimeofday": (96, 169), "setitimer": (38, 103), "rt_sigreturn": (15, 139)},
    **{"restart_syscall": (219, 128), "exit": (60, 93), "exit_group": (231, 94)},
}
MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}  # place among these numbers, the kernel's own name
_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _FILTER = 38, 22, 2
_LOAD, _EQUALS, _RETURN = 0x20, 0x15, 0x06  # instructions of the kernel's filter machine
_ALLOW, _REFUSE, _KILL = 0x7FFF0000, 0x00050001, 0x80000000  # _REFUSE: the call fails with EPERM
_CREATE_RULESET, _RESTRICT_SELF = 444, 446  # system calls of Landlock, the same on all machines


def lock_in(memory: int, weak: bool) -> list[str]:
    """Give up everything but computing, for good; return the names of the locks that hold.

    ``memory`` are bytes of address space; with ``weak`` limits of resources alone will do if the kernel has nothing
    better.

    Raises:
        OSError: the kernel can't hold a program, and ``weak`` doesn't allow that.
    """
    import resource  # there is none on Windows

    limits = {resource.RLIMIT_AS: memory, resource.RLIMIT_CORE: 0, resource.RLIMIT_FSIZE: 0, resource.RLIMIT_NPROC: 0}
    for kind, most in limits.items():
        try:
            resource.setrlimit(kind, (most, most))
        except (ValueError, OSError):  # macOS doesn't take every limit
            if not weak:
                raise
    locks = ["rlimits"]
    if not sys.platform.startswith("linux") or platform.machine() not in MACHINES:
        if weak:
            return locks
        raise OSError(f"there is no seccomp filter for {platform.system()} on {platform.machine()}")
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "the kernel refuses no_new_privs")
    if _landlock(libc):
        locks.append("landlock")
    _seccomp(libc)
    try:  # a lock is only believed once it has been tried
        os.close(os.open("/", os.O_RDONLY))
    except PermissionError:
        return [*locks, "seccomp"]
    raise OSError("the seccomp filter is there and doesn't hold")


def _landlock(libc: Any) -> bool:
    """Refuse every file, TCP port, signal and abstract socket, as far as this kernel's Landlock knows of them."""
    version = libc.syscall(_CREATE_RULESET, None, 0, 1)
    if version < 1:
        return False
    files = (1 << (13 + (version >= 2) + (version >= 3) + (version >= 5))) - 1
    asked = struct.pack("=QQQ", files, 0b11, 0b11)[: 8 + 8 * (version >= 4) + 8 * (version >= 6)]
    rules = libc.syscall(_CREATE_RULESET, asked, len(asked), 0)  # without exceptions: nothing is allowed
    held = rules >= 0 and libc.syscall(_RESTRICT_SELF, rules, 0) == 0
    if rules >= 0:
        os.close(rules)
    return bool(held)


def _seccomp(libc: Any) -> None:
    place, machine = MACHINES[platform.machine()]
    numbers = [both[place] for both in _CALLS.values()]
    program = [
        (_LOAD, 0, 0, 4),  # the machine that the call is made for
        (_EQUALS, 1, 0, machine),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, 0),  # the call's number
        *((_EQUALS, len(numbers) - at, 0, number) for at, number in enumerate(numbers)),
        (_RETURN, 0, 0, _REFUSE),
        (_RETURN, 0, 0, _ALLOW),
    ]
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *each) for each in program))
    given = ctypes.create_string_buffer(struct.pack("HP", len(program), ctypes.addressof(code)))
    if libc.prctl(_PR_SET_SECCOMP, _FILTER, ctypes.byref(given), 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "the kernel refuses a seccomp filter")


# ------------------------------------------------------------------------------------------------ programs


def _import(name: str, names: Any = None, locals: Any = None, wanted: Any = (), level: int = 0) -> Any:
    """Import as a program may."""
    if level or (name not in MODULES and name.partition(".")[0] not in MODULES):
        raise ImportError(f"a program may import {', '.join(MODULES[1:])}; got {name!r}")
    return builtins.__import__(name, names, locals, wanted, level)


_BUILTINS = {name: one for name, one in vars(builtins).items() if name not in HIDDEN} | {"__import__": _import}


def draws_from_the_seed() -> random.Random:
    """Have generators without a seed, and those of the system, seeded by the one that is returned."""
    fresh, seed = random.Random(), random.Random.seed

    def seeded(self: random.Random, a: Any = None, version: int = 2) -> None:
        seed(self, fresh.getrandbits(128) if a is None else a, version)

    class SystemRandom(random.Random):
        def seed(self, *unused: Any, **more: Any) -> None:
            seeded(self)

    vars(random)["SystemRandom"] = SystemRandom
    setattr(random.Random, "seed", seeded)  # noqa: B010 - a method, which mypy wouldn't have assigned
    random.seed = random._inst.seed
    return fresh


class Program:
    """A source that is run anew for every call, so that a call depends on its arguments alone."""

    def __init__(self, source: str, harness: str, seconds: float) -> None:
        self._source, self._seconds = source, seconds
        self._code: CodeType | None = None
        self._fresh = draws_from_the_seed()  # before it is kept how the modules are
        shared = [one for name, one in sys.modules.items() if {name, name.partition(".")[0]} & {*MODULES}]
        self._shared = [(vars(one), dict(vars(one))) for one in shared if isinstance(one, ModuleType)]
        self._context = decimal.getcontext().copy()
        self._harness = ModuleType("harness")
        exec(harness, self._harness.__dict__)

    def functions(self) -> list[str]:
        return [name for name, one in vars(self._names()).items() if callable(one)]

    def call(self, digest: str, function: str, arguments: list[Any]) -> Any:
        """Return what a function of the harness returns, or of the program if the harness has none of this name."""
        for names_now, names_before in self._shared:  # an earlier call may have left something in a module
            names_now.clear()
            names_now.update(names_before)
        decimal.setcontext(self._context.copy())
        self._fresh.seed(digest)
        random.seed(digest)
        trusted = getattr(self._harness, function, None)
        names = self._names()
        return getattr(names, function)(*arguments) if trusted is None else trusted(names, *arguments)

    def _names(self) -> ModuleType:
        """Return a fresh module of what the program defines."""
        if self._code is None:
            self._code = compile(self._source, f"<{NAME}>", "exec")
        module = sys.modules[NAME] = ModuleType(NAME)  # data classes look for their module
        module.__dict__["__builtins__"] = dict(_BUILTINS)
        exec(self._code, module.__dict__)
        return module

    def answer(self, name: str, task: Callable[[], Any]) -> str:
        """Return ``[name, "value", what a task returns]`` or ``[name, "error", why it doesn't]``, as a line of JSON.

        The kernel ends the process of a task that takes too long.
        """
        signal.setitimer(signal.ITIMER_PROF, self._seconds)
        try:
            return json.dumps([name, "value", task()], allow_nan=False)
        except BaseException as error:  # noqa: BLE001 - whatever the program raises is its answer
            return json.dumps([name, "error", self._told(error)])
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)

    def _told(self, error: BaseException) -> str:
        """Return an error in one line, with the line of the program that raised it."""
        line, trace = getattr(error, "lineno", None) if isinstance(error, SyntaxError) else None, error.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == f"<{NAME}>":
                line = trace.tb_lineno
            trace = trace.tb_next
        try:
            said = f"{type(error).__name__}: {error}"[:LONGEST_ERROR].removesuffix(": ")
        except BaseException:  # noqa: BLE001 - the program's own exception, which may do anything when it is asked
            said = type(error).__name__
        lines = self._source.splitlines()
        return f"{said} (line {line}: {lines[line - 1].strip()[:80]})" if line and line <= len(lines) else said


def main() -> None:
    """Lock in, then answer calls until there are no more."""
    answers, nothing = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):  # what a program prints goes nowhere
        os.dup2(nothing, stream)
    order = json.loads(sys.stdin.buffer.readline())
    os.environ.clear()
    for module in MODULES:
        importlib.import_module(module)
    for codec in ("utf-8", "ascii", "latin-1"):
        "".encode(codec)
    random.seed("")  # loads what a text is hashed with

    def send(line: str) -> None:
        data = line.encode() + b"\n"
        while data:
            data = data[os.write(answers, data) :]

    try:
        locks = lock_in(order["memory"], order["weak"])
    except OSError as error:
        return send(json.dumps([0, "refused", str(error)]))
    send(json.dumps([0, "locked", locks]))
    program = Program(order["source"], order["harness"], order["seconds"])
    send(program.answer("functions", program.functions))
    for line in sys.stdin.buffer:
        call = json.loads(line)
        send(program.answer(call[0], partial(program.call, *call)))
    return None


if __name__ == "__main__":
    main()
