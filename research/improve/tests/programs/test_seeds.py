"""No program finds out which episode it plays: the seed never enters its process, whatever the program reads there."""

import os
from ast import literal_eval

import pytest

from agents import TurnRequest, load_agent
from research.improve.programs.sandbox import Call, Sandbox, digest_of
from research.improve.tests.programs.test_sandbox import REACH
from research.improve.tests.programs.test_sandbox import pytestmark as pytestmark  # these need the kernel's locks, too


@pytest.mark.parametrize("spec", ["program:FILE", "masked(random)"])
def test_what_a_program_is_given_has_no_seed(spec, tmp_path):
    (file := tmp_path / "told.py").write_text(
        "def act(*told):\n    return repr(told)\ndef allowed(*told):\n    return [repr(told)]"
    )
    options = {"program": str(file)} if "masked" in spec else {}
    player = load_agent(spec.replace("FILE", str(file)), **options)
    (turn,) = player.act([TurnRequest("where", legal_actions=("left",), seed=(SEED, 3, 0))])
    assert turn.response.endswith("<action>('where', ['left'])</action>")


SEED, KEY = 8_675_309_123, "open-sesame-open"
LIES = (SEED & (1 << 30) - 1, SEED >> 30)  # as Python holds it in memory

REACHING = f"""{REACH}
sys, main = modules()["sys"], modules()["__main__"]
gc = modules()["_frozen_importlib"].BuiltinImporter.load_module("gc")
import random, json

def frames():
    frame, found = sys._getframe(), []
    while frame is not None:
        found.append(frame)
        frame = frame.f_back
    return found

def told(*things):
    return [repr(one)[:20000] for one in things]

def of_kind(name):
    return [one for one in gc.get_objects() if type(one).__name__ == name]

def reads(place):
    "Whether memory can be read there: a futex is waited for, with another value than it has, and not for long."
    kernel.syscall(FUTEX, ctypes.c_void_p(place), 0, 0x5EED5EED, ctypes.byref((ctypes.c_long * 2)()), None, 0)
    return ctypes.get_errno() in (11, 110)

def pages():
    "Every page of memory around what is there: objects, the heap, the stack, libraries; read as soon as it can be."
    kernel.sbrk.restype = ctypes.c_void_p
    on_stack = (ctypes.c_char * 8)()
    roots = {{id(one) >> 12 for one in gc.get_objects()}}
    roots |= {{id(one) >> 12 for one in (None, "", frames(), main)}}
    roots |= {{kernel.sbrk(0) - 4096 >> 12, ctypes.addressof(on_stack) >> 12}}
    roots.add(ctypes.cast(kernel.getenv, ctypes.c_void_p).value >> 12)
    roots.add(ctypes.c_void_p.in_dll(kernel, "environ").value >> 12)
    known = set()
    for root in roots:
        for step in (1, -1):
            page = root
            while page not in known and reads(page << 12):
                known.add(page)
                yield ctypes.string_at(page << 12, 4096)
                page += step

def scanned(first, second):
    "Whether memory holds two halves next to each other, which the program has only apart."
    for text in pages():
        at = text.find(first)
        while at >= 0:
            if text[at + len(first):].startswith(second):
                return True
            at = text.find(first, at + 1)
    return False

def run(line, *more):
    return str(eval(line))
"""
FUTEX = {"x86_64": 202}.get(os.uname().machine, 98)
PROCESS_VM_READV = {"x86_64": 310}.get(os.uname().machine, 270)

TRIES = {
    "locals of all frames": "told(*[one.f_locals for one in frames()])",
    "globals of all frames": "told(*[one.f_globals for one in frames()])",
    "constants of all frames": "told(*[one.f_code.co_consts for one in frames()])",
    "frames of all threads": "told(*[one.f_locals for one in sys._current_frames().values()])",
    "exceptions of all threads": "told(sys._current_exceptions(), sys.exc_info())",
    "frames by a generator": "told((lambda g: (next(g), g.gi_frame.f_back, g.gi_frame.f_locals))(x for x in [1]))",
    "the task's parts": "told(*[one.f_locals['task'].args for one in frames() if 'task' in one.f_locals])",
    "the task's function": "told(*[vars(one.f_locals['self']) for one in frames() if 'task' in one.f_locals])",
    "cells of closures": "told(*[cell.cell_contents for one in of_kind('function') for cell in one.__closure__ or ()])",
    "all objects": "told(*[one for kind in ('list', 'tuple', 'dict') for one in of_kind(kind) if len(one) < 20])",
    "all integers in lists": "told([x for one in of_kind('list') + of_kind('tuple') for x in one if type(x) is int])",
    "who refers to the arguments": "told(*gc.get_referrers(frames()[1].f_locals['line']))",
    "what frames refer to": "told(*[gc.get_referents(one) for one in frames()])",
    "unreachable rubbish": "told(gc.collect(), gc.garbage, gc.get_stats())",
    "the worker": "told(vars(main))",
    "its program": "told(*[vars(one) for one in of_kind('Program')])",
    "its functions": "told(*[one.__dict__ for one in vars(main).values() if hasattr(one, '__dict__')])",
    "its default arguments": "told(*[getattr(one, '__defaults__', 0) for one in vars(main).values()])",
    "its arguments": "told(sys.argv, sys.orig_argv, sys.flags, sys._xoptions)",
    "paths": "told(sys.path, sys.path_importer_cache, sys.executable)",
    "the environment": "told(os.environ, os.environb)",
    "the environment in C": "told(ctypes.POINTER(ctypes.c_char_p).in_dll(kernel, 'environ')[0])",
    "its stream": "told(sys.stdin, sys.stdin.buffer, sys.stdin.buffer.raw, vars(sys.stdin))",
    "its stream's state": "told(sys.stdin.buffer.__reduce_ex__(4))",
    "a descriptor at once": "told([os.get_blocking(one) for one in range(5)])",
    "a descriptor from now on": "os.set_blocking(0, False)",
    "the answers, read": "told(os.read(3, 100))",
    "the calls, written": "told(os.write(0, b'x'))",
    "messages of a socket": "told(kernel.recv(0, (ctypes.c_char * 10)(), 10, 0x40), ctypes.get_errno())",
    "what a generator was seeded by": "told(random.getstate(), random._inst.getstate())",
    "what the other one was seeded by": "told(*[vars(one)['_fresh'].getstate() for one in of_kind('Program')])",
    "random bytes": "told(os.urandom(16), random.SystemRandom().random())",
    "clocks": "told(*[getattr(modules()['time'], name)() for name in ('time', 'monotonic', 'process_time')])",
    "its own number": "told(os.getpid())",
    "its parent's number": "told(os.getppid())",
    "its memory as a file": "os.open('/proc/self/mem', 0)",
    "its command as a file": "os.open('/proc/self/cmdline', 0)",
    "its map as a file": "os.open('/proc/self/maps', 0)",
    "its parent's memory": f"told(kernel.syscall({PROCESS_VM_READV}, 1, None, 0, None, 0, 0), ctypes.get_errno())",
    "shared memory": "told(kernel.shmget(0, 4096, 0o1600), ctypes.get_errno())",
    "caches of patterns": "told(modules()['re']._cache, modules()['re'].__dict__.get('_cache2'))",
    "memories of json": "told(json._default_decoder.__dict__, json._default_encoder.__dict__, json.decoder.__dict__)",
    "weak references": "told(*[one() for one in of_kind('weakref')])",
    "memory that was given back": "told(ctypes.string_at(ctypes.create_string_buffer(4096), 4096))",
    "around its arguments": "told(ctypes.string_at(id(frames()[1].f_locals['line']) - 1024, 4096))",
    "all of its memory for the seed's text": "scanned(b'86753', b'09123')",
    "all of its memory for the seed": f"scanned({LIES[0].to_bytes(4, 'little')!r}, {LIES[1].to_bytes(4, 'little')!r})",
    "all of its memory for the key": "scanned(b'open-ses', b'ame-open')",
}


def forbidden(told: str) -> list[str]:
    return [one for one in (str(SEED), hex(SEED)[2:], KEY) if one in told]


@pytest.fixture(scope="module")
def reaching():
    with Sandbox(f"FUTEX = {FUTEX}\n{REACHING}", key=KEY, seconds=20) as sandbox:
        assert sandbox.error is None
        yield sandbox


@pytest.mark.parametrize("name", TRIES)
def test_no_try_tells_the_seed_or_the_key(reaching, name):
    answer = reaching.calls([Call("run", (TRIES[name],), (SEED, 3, 0)), Call("run", ("1",), (SEED, 4, 0))])[0]
    assert answer.value != "True", "a scan has found it"
    assert not forbidden(f"{answer.value} {answer.error}")
    assert not (answer.error or "").startswith(("NameError", "SyntaxError", "AttributeError", "KeyError")), (
        "the try itself is broken"
    )


def test_the_scan_finds_what_is_there(reaching):
    """Else the tries by memory would prove nothing: a call's own argument is found, and what an object holds."""
    assert reaching.call("run", "scanned(b'here-it', b'-stands')", "here-it-stands").value == "True"
    low, high = ((SEED + 1) & (1 << 30) - 1).to_bytes(4, "little"), (SEED >> 30).to_bytes(4, "little")
    assert reaching.call("run", f"scanned({low!r}, {high!r})", SEED + 1).value == "True"


def test_calls_come_one_at_a_time_in_an_order_that_tells_nothing():
    """The first call of a batch that is handed over is alone in memory; and it isn't always the first of the batch."""
    counted = "setattr(main, 'count', getattr(main, 'count', 0) + 1), main.count"
    line = f"({counted}, sum(scanned(b'tok', b'en-%d' % number) for number in range(4)))[1:]"
    orders = set()
    for key in "abc":
        with Sandbox(f"FUTEX = {FUTEX}\n{REACHING}", key=key, seconds=20) as sandbox:
            calls = [Call("run", (line, f"token-{number}"), (SEED + number,)) for number in range(4)]
            answers = sandbox.calls(calls)
        assert [answer.error for answer in answers] == [None] * 4
        told = [literal_eval(answer.value) for answer in answers]
        assert all(seen <= place for place, seen in told)
        orders.add(tuple(place for place, _ in told))
    assert len(orders) > 1


def test_a_spy_that_a_call_leaves_behind_finds_no_seed(reaching):
    """A program that goes out of its way can keep something between calls; what it sees of them is their digests."""
    hook = "(lambda loads: lambda line: (main.Program.spied.append(bytes(line)), loads(line))[1])(json.loads)"
    leaves = f"(setattr(main.Program, 'spied', []), setattr(json, 'loads', {hook}))"
    reaching.call("run", leaves, seed=(SEED, 1, 0))
    spied = reaching.call("run", "main.Program.spied", seed=(SEED, 2, 0)).value
    assert "main.Program.spied" in spied, "the spy works"
    assert not forbidden(spied)
    reaching.close()


def test_a_digest_is_that_of_the_whole_call():
    """So that the same start told in other words, as by a twin, isn't known again."""
    calls = [Call("act", ("here",), (1,)), Call("act", ("there",), (1,)), Call("act", ("here",), (2,))]
    assert len({digest_of(call, KEY) for call in calls}) == 3
    assert digest_of(calls[0], KEY) == digest_of(Call("act", ("here",), (1,)), KEY) != digest_of(calls[0], "another")
