"""A sandbox computes, and what reaches for anything else is stopped: by the kernel, whatever Python lets through."""

import os
import random
import socket
import subprocess
import sys

import pytest

from research.improve.programs.sandbox import LONGEST_ANSWER, WEAK, Call, NoSandboxError, Sandbox

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the kernel's locks are Linux's")

# the way around everything that Python forbids: from an empty tuple to every class, and from one to the real modules
REACH = """
def modules():
    for one in ().__class__.__mro__[-1].__subclasses__():
        names = getattr(getattr(one, "__init__", None), "__globals__", {})
        if "sys" in names:
            return names["sys"].modules

os, ctypes, signal = (modules()[name] for name in ("os", "ctypes", "signal"))
socket, subprocess = modules().get("_socket"), modules().get("_posixsubprocess")
kernel = ctypes.CDLL(None, use_errno=True)
"""

INSIDE = REACH.strip().replace("\n", "\n    ")  # the same in the body of a function

ATTACKS = {
    "forks": "os.fork()",
    "becomes another program": "os.execv('/bin/true', ['true'])",
    "starts a thread": "modules()['_thread'].start_new_thread(print, ())",
    "reads a file of the system": "os.open('/etc/passwd', 0)",
    "reads the project": f"os.open({__file__!r}, 0)",
    "lists a folder": "os.listdir('/')",
    "asks about a file": "os.stat('/etc/passwd')",
    "writes a file": "os.open('/tmp/from-a-sandbox', os.O_WRONLY | os.O_CREAT)",
    "removes a file": "os.unlink('/tmp/from-a-sandbox')",
    "kills its parent": "os.kill(os.getppid() or 1, 9)",
    "looks into another process": "os.open(f'/proc/{PARENT}/environ', 0)",
    "lifts its limits": "modules()['resource'].setrlimit(9, (1 << 40, 1 << 40))",
    "catches its alarm": "signal.signal(signal.SIGPROF, signal.SIG_IGN)",
    "copies a descriptor": "os.dup(0)",
}


@pytest.fixture(scope="module")
def reaching():
    """A program that has ``os`` and ``ctypes`` in its hands, and runs any line."""
    with Sandbox(f"{REACH}\nPARENT = {os.getpid()}\ndef run(line):\n    return eval(line) or 'done'") as sandbox:
        assert sandbox.error is None
        yield sandbox


@pytest.mark.parametrize("attack", ATTACKS)
def test_the_kernel_refuses(reaching, attack):
    answer = reaching.call("run", ATTACKS[attack])
    assert answer.value is None
    assert answer.error is not None
    assert any(said in answer.error for said in ("not permitted", "not allowed", "can't start new thread"))
    assert reaching.call("run", "1 + 1").value == 2  # and it goes on


SOCKET, CLONE, PTRACE, IO_URING, OPENAT2 = {"x86_64": (41, 56, 101, 425, 437)}.get(
    os.uname().machine, (198, 220, 117, 425, 437)
)


@pytest.mark.parametrize("number", [SOCKET, CLONE, PTRACE, IO_URING, OPENAT2, 0x40000000 + 2, 10_000])
def test_machine_code_gets_no_further(reaching, number):
    """The calls as such, past every library; among them those of the old 32-bit numbering."""
    assert reaching.call("run", f"(kernel.syscall({number}, 2, 1, 0), ctypes.get_errno())").value == [-1, 1]


def test_nothing_of_ours_is_in_its_memory(reaching, monkeypatch):
    monkeypatch.setenv("A_SECRET_KEY", "sesame")
    with Sandbox(f"{REACH}\ndef act(*_):\n    return [dict(os.environ), sorted(modules())]") as sandbox:
        environment, names = sandbox.call("act").value
    assert environment == {}
    assert not [name for name in names if name.split(".")[0] in ("agents", "textgames", "numpy", "site")]
    read = "kernel.getenv.restype, [kernel.getenv(b'A_SECRET_KEY'), kernel.getenv(b'PATH'), kernel.getenv(b'HOME')]"
    assert reaching.call("run", f"({read})[1]").value == [0, 0, 0]


WRITES = f"""{REACH}
def act(*_):
    found = []
    for descriptor in range(64):
        try:
            os.write(descriptor, b"")
            found.append(descriptor)
        except OSError:
            pass
    return found
"""


def test_no_descriptor_of_ours_is_open():
    reader, writer = os.pipe()
    os.set_inheritable(writer, True)
    ours, theirs = socket.socketpair()
    ours.set_inheritable(True)
    with Sandbox(WRITES) as sandbox:
        writable = sandbox.call("act").value
    assert len(writable) == 4  # what it prints, twice /dev/null, and that itself; the answers
    assert writer not in writable
    for one in (reader, writer):
        os.close(one)
    ours.close()
    theirs.close()


# getpid by the old 32-bit door, in machine code: a filter that looks at numbers alone takes it for another call
OLD_DOOR = f"""{INSIDE}
    kernel.mmap.restype = ctypes.c_void_p
    place = kernel.mmap(0, 4096, 7, 0x22, -1, 0)
    ctypes.memmove(place, b"\\xb8\\x14\\x00\\x00\\x00\\xcd\\x80\\xc3", 8)
    return ctypes.CFUNCTYPE(ctypes.c_int)(place)()"""

ENDINGS = {
    "32-bit calls": (OLD_DOOR, "ended its process"),
    "loop": ("while True: pass", "took more than 0.3 seconds"),
    "loop that catches": ("while True:\n        try:\n            while True: pass\n        except: pass", "took more"),
    "gigabyte": ("return len([0] * 10**9)", "MemoryError"),
    "growing list": ("x = []\n    while True: x.append(bytes(10**7))", "MemoryError"),
    "deep": ("return act()", "RecursionError"),
    "deep in C": ("x = []\n    for _ in range(10**5): x = [x]\n    return repr(x)", "RecursionError"),
    "exit": ("raise SystemExit", "SystemExit"),
    "crash": (f"{INSIDE}\n    ctypes.string_at(0)", "ended its process"),
    "flood of an answer": ("return 'x' * 2 * 10**6", "more than 1,048,576 bytes"),
    "flood of the pipe": (f"{INSIDE}\n    while True: os.write(3, b'x')", "more than"),
    "another's answer": (f"{INSIDE}\n    os.write(3, b'[999, \"value\", 1]\\n')", "something else than an answer"),
    "evil reduce": (
        "class Evil:\n        def __reduce__(self): return (print, ('pwned',))\n    return Evil()",
        "TypeError: Object of type Evil is not JSON serializable",
    ),
    "evil error": ("class Evil(Exception):\n        def __str__(self): raise SystemExit\n    raise Evil", "Evil"),
    "no number": ("return float('nan')", "ValueError"),
    "error": ("return {}['left']", "KeyError: 'left' (line 3: return act())"),
    "import": ("import os", "a program may import"),
    "missing": ("return open('/etc/passwd')", "NameError"),
}


@pytest.fixture(scope="module")
def ending_badly():
    """A program that runs any function's body, and has a good function beside it."""
    run = "def run(body):\n    exec('def act():\\n    ' + body, globals())\n    return act()\n"
    with Sandbox(f"{run}def good():\n    return 'left'", seconds=0.3) as sandbox:
        yield sandbox


@pytest.mark.parametrize("ending", ENDINGS)
def test_whoever_ends_badly_is_alone_with_it(ending_badly, ending):
    body, message = ENDINGS[ending]
    calls = [Call("good", ()), Call("run", (body,)), Call("good", ())]
    before, bad, after = ending_badly.calls(calls)
    assert (before.value, after.value) == ("left", "left")
    assert bad.value is None
    assert message in (bad.error or "")
    assert ending_badly.call("good").value == "left"


def test_who_waits_is_killed_by_the_clock():
    with Sandbox("import queue\ndef act():\n    queue.Queue().get()", seconds=0.01) as sandbox:
        assert "took more than 0.01 seconds" in str(sandbox.call("act").error)


@pytest.mark.parametrize("source", ["def act(:", "import os", "1 / 0", "while True: pass", "raise SystemExit"])
def test_a_program_that_fails_as_a_whole_says_so(source):
    with Sandbox(source, seconds=0.1) as sandbox:
        assert sandbox.error
        assert sandbox.functions == ()
        assert sandbox.call("act").error == sandbox.error


CHANCE = """
import random
seen = []
def act(names):
    seen.append(1)
    return [random.choice(names), len(seen), list({"a", "b", "c", "d"})]
"""


TOUR = """
import array, bisect, cmath, copy, decimal, enum, fractions, functools, heapq, itertools, json, math, operator, queue
import random, re, statistics, string, textwrap, types
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Optional, Protocol, get_type_hints

@dataclass(frozen=True, order=True)
class Point:
    x: int = 0
    cells: tuple = field(default_factory=tuple)

Pair = NamedTuple("Pair", [("a", int), ("b", Optional[str])])
Way = enum.Enum("Way", ["LEFT"])

def act():
    random.seed("text")
    line = queue.PriorityQueue()
    line.put((1, "x"))
    return [
        replace(Point(), x=2).x, Pair(1, None)._asdict(), Way.LEFT.name, functools.reduce(operator.mul, [2, 3]),
        re.findall(r"(?i)\\d+ WIDE", "4 wide"), heapq.nsmallest(1, [3, 1]), line.get()[1], [*get_type_hints(Pair)],
        str(decimal.Decimal("1.10") + 1), str(fractions.Fraction(1, 3)), statistics.median([1, 2, 3]), math.floor(2.5),
        json.loads(json.dumps({"a": [1.5]})), copy.deepcopy([[1]]), Counter("aab").most_common(), bisect.bisect([1], 1),
        string.Template("$a").substitute(a=1), textwrap.dedent(" x"), list(itertools.permutations([1, 2])),
        f"{1 / 3:.2f} {'é'!a}", "é".encode("latin-1").hex(), random.choices([1], k=2), cmath.sqrt(-1).imag,
        statistics.NormalDist(0, 1).cdf(0), list(array.array("d", [0.5])), types.SimpleNamespace(a=1).a,
    ]
"""


def test_everything_that_may_be_imported_works_behind_the_door():
    with Sandbox(TOUR) as sandbox:
        answer = sandbox.call("act")
    assert answer.error is None
    assert answer.value[:4] == [2, {"a": 1, "b": None}, "LEFT", 6]


def test_equal_calls_have_equal_answers_whatever_was_before():
    names = ["left", "down", "right", "up"]
    calls = [Call("act", (names,), (1, at)) for at in range(8)]
    with Sandbox(CHANCE, key="k") as first, Sandbox(CHANCE, key="k") as second:
        there = first.calls(calls)
        back = [second.call(*call[:1], *call.arguments, seed=call.seed) for call in reversed(calls)]
    assert there == back[::-1]
    assert len({answer.value[0] for answer in there}) > 1


LEAVING = """
import decimal, math
def act(names):
    before = getattr(math, "count", 0), decimal.getcontext().prec, "left" in __builtins__, math.floor(2.5)
    math.count, math.floor, decimal.getcontext().prec, __builtins__["left"] = 1, str, 5, 1
    return before
"""
UNSEEDED = """
import random
def act(names):
    one = random.Random()
    found = [one.random(), random.SystemRandom().choice(names), random.SystemRandom().random()]
    one.seed()
    random.seed()
    return [*found, one.random(), random.random(), random.Random(3).random()]
"""


def test_what_a_call_leaves_in_a_module_is_gone_in_the_next():
    with Sandbox(LEAVING) as sandbox:
        answers = sandbox.calls([Call("act", ([],))] * 3)
    assert [answer.value for answer in answers] == [[0, 28, False, 2]] * 3


def test_generators_without_a_seed_draw_from_that_of_the_call():
    calls = [Call("act", (["left", "up"],), (1, at)) for at in range(8)]
    with Sandbox(UNSEEDED, key="k") as first, Sandbox(UNSEEDED, key="k") as second:
        there = [answer.value for answer in first.calls(calls)]
        assert there == [answer.value for answer in second.calls(calls[::-1])][::-1]
    assert len({drawn for found in there for drawn in found if isinstance(drawn, float)}) == 4 * 8 + 1
    assert {found[-1] for found in there} == {random.Random(3).random()}


def test_a_harness_gets_the_names_of_the_program():
    harness = "import math\ndef twice(names, x):\n    return math.floor(2 * names.half(x))"
    with Sandbox("def half(x):\n    return x / 2", harness=harness) as sandbox:
        assert sandbox.functions == ("half",)
        assert (sandbox.call("twice", 7).value, sandbox.call("half", 7).value) == (7, 3.5)


def test_processes_end_with_their_sandboxes():
    sandbox = Sandbox("def act():\n    return 1")
    assert sandbox._line is not None
    process = sandbox._line._process
    del sandbox
    assert process.returncode is not None


def test_without_the_kernel_it_refuses_unless_allowed(tmp_path):
    """The worker as on a machine that it doesn't know."""
    code = (
        "from pathlib import Path; import research.improve.programs.sandbox as it;"
        "worker = it._WORKER.read_text().replace('platform.machine()', repr('vax'));"
        f"it._WORKER = Path({str(tmp_path)!r}, 'worker.py'); it._WORKER.write_text(worker);"
        "print(it.Sandbox('def act(): return 1').locks)"
    )
    strict, weak = (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, WEAK: allowed})
        for allowed in ("0", "1")
    )
    assert f"set {WEAK}=1" in strict.stderr
    assert NoSandboxError.__name__ in strict.stderr
    assert weak.stdout.strip() == "('rlimits',)"


@pytest.mark.parametrize("limits", [{"seconds": 0}, {"seconds": float("nan")}, {"memory_mb": 1}])
def test_limits_that_are_none_are_refused(limits):
    with pytest.raises(ValueError, match=next(iter(limits))):
        Sandbox("", **limits)  # type: ignore[arg-type]


def test_the_longest_answer_arrives_and_what_is_printed_does_not():
    with Sandbox("def act(n):\n    print('y' * n)\n    return 'x' * n") as sandbox:
        assert len(sandbox.call("act", LONGEST_ANSWER - 100).value) == LONGEST_ANSWER - 100
