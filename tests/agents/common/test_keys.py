"""Single keys of a terminal and their names; tests of ``textbench play`` show that the terminal is put back."""

import os
import sys
import time

import pytest

from tests.terminal import Terminal

PROGRAM = """
from agents.common.keys import END_OF_INPUT, Keyboard
with Keyboard() as keyboard:
    print("ready", flush=True)
    while (key := keyboard.read()) != END_OF_INPUT:
        print(f"<{key}>", flush=True)
"""


@pytest.fixture
def terminal():
    with Terminal([sys.executable, "-c", PROGRAM]) as terminal:
        terminal.wait_for("ready")
        yield terminal


NAMES = {
    "\x1b[A\x1b[B\x1b[C\x1b[D": "<up>\n<down>\n<right>\n<left>\n",
    "\x1bOA\x1bOH\x1bOF": "<up>\n<home>\n<end>\n",  # as a terminal in application mode sends them
    "\x1b[5~\x1b[6~\x1b[1~\x1b[4~": "<page up>\n<page down>\n<home>\n<end>\n",
    "\n\x7f": "<enter>\n<backspace>\n",
    "A ?é字": "<A>\n< >\n<?>\n<é>\n<字>\n",
    "\x1b[15~\x1b[1;2Ax": "<>\n<>\n<x>\n",  # F5 and Shift with an arrow have no meaning here
}


def test_keys_have_names(terminal):
    assert {typed: terminal.press(typed, named.strip().splitlines()[-1]) for typed, named in NAMES.items()} == NAMES


def test_an_arrow_key_that_arrives_in_pieces_is_one_key(terminal):
    for piece in ("a\x1b", "[", "1;"):
        os.write(terminal.file, piece.encode())
        time.sleep(0.1)
    assert terminal.press("2", "<a>") == "<a>\n"
    assert terminal.press("Cb", "<b>") == "<>\n<b>\n"
