"""Documentation is short and in plain words: limits of length, and patterns of what the rules of prose forbid.

The numbers are those of the rules: (1) a condition is *if* or *when*, and *where* is for places; (2) no headless *who*
or *what*; (3) a function's docstring begins with an imperative verb; (4) no sentence begins with "Of"; (5) the words of
the field; (7) no "nobody" and "somebody". Code is no prose; docstrings and comments are.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NO_GUIDE = (ROOT / "docs/research", ROOT / "docs/reference/api")  # studies, and pages made of docstrings
GUIDE = [page for page in sorted((ROOT / "docs").rglob("*.md")) if not set(page.parents) & set(NO_GUIDE)]
PAGES = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", *GUIDE]
PACKAGES = ("agents", "benchmark", "docs/tools", "examples", "research", "textbench", "textgames")
FILES = [file for name in PACKAGES for file in sorted((ROOT / name).rglob("*.py"))]
MODULES = [file for file in FILES if "tests" not in file.relative_to(ROOT).parts]

WORDS = {"README.md": 1200, "ARCHITECTURE.md": 700, "docs": 22_000}
"""The most words: of two files, and of the guide and the reference together."""

START = r"(?:^|(?<=[.!?:] ))"  # of a sentence
FORBIDDEN = {
    "1: if or when": [
        r"\b[Ww]here (?:there (?:is|are|was|were)|nothing|none|no|one|it|they|that|known|possible|more|several)\b",
        r"(?:`x`|empty|zero|nothing) where\b",
    ],
    "2: name the noun": [rf"{START}Who\b[^?]*\.", r"\bwhoever\b", r"\bwho (?:that is|reads nothing)\b"],
    "4: no sentence begins with Of": [rf"{START}Of (?!course)"],
    "5: the field's words": [
        r"\bgo(?:es|ing)? on\b",
        r"\bwent on\b",
        r"(?<![/\w])shelf\b(?!/)",
        r"\bluck (?:is |was )?taken out\b",
    ],
    "7: name them, or say none": [r"\b(?:[Nn]o|[Ss]ome)body\b"],
}
NO_VERB = re.compile(r"(?:What|How|Whether|Where|Who|Which|Why|The|An?|All|Every|Each|One|Those|Everything)\b")


def faults(prose: str) -> list[str]:
    """Return what a text has that the rules forbid, each with its rule."""
    found = []
    for rule, patterns in FORBIDDEN.items():
        for pattern in patterns:
            found += [f"{rule}: {one[0]!r}" for one in re.finditer(pattern, prose, re.MULTILINE)]
    return found


def markdown_prose(text: str) -> str:
    """Return a page's prose, a paragraph a line: code is left out, and so is what is made from docstrings or play."""
    text = re.sub(r"^```.*?^```|<!--made:.*?<!--end:[\w-]+-->|<!--.*?-->|\A---\n.*?^---", "", text, flags=re.S | re.M)
    text = re.sub(r"\]\([^)\s]*\)|\{[\w-]+\}", "", re.sub(r"`[^`]*`", "`x`", text)).replace("*", "").replace("[", "")
    text = re.sub(r"^[-#|>\d. ]+", "\n", text, flags=re.MULTILINE)
    return re.sub(r"(?<=\S)\n(?=\S)", " ", text)


def python_prose(text: str) -> Iterator[tuple[int, str]]:
    """Yield ``(line, text)`` of every docstring and comment of a module."""
    for node in ast.walk(ast.parse(text)):
        for one in ast.iter_child_nodes(node):
            if isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant) and isinstance(one.value.value, str):
                yield one.lineno, markdown_prose(re.sub(r"``[^`]*``", "`x`", one.value.value))
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], re.sub(r"`+[^`]*`+", "`x`", token.string.lstrip("# "))


def without_verb(text: str) -> Iterator[tuple[int, str]]:
    """Yield ``(line, first words)`` of the docstrings of functions, properties aside, that begin with no verb."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            marks = {getattr(mark, "id", getattr(mark, "attr", "")) for mark in node.decorator_list}
            said = ast.get_docstring(node) or ""
            if not marks & {"property", "cached_property"} and NO_VERB.match(said):
                yield node.lineno, said[:40]


def words(*files: Path) -> int:
    """Count words as a reader would: the lines of tables and the cells of drawn boards are none."""
    text = " ".join(re.sub(r"<!--.*?-->", "", file.read_text(), flags=re.DOTALL) for file in files)
    return sum(1 for word in text.split() if re.search(r"[^\W_]", word))


def test_the_documentation_is_short():
    counted = {"docs": words(*GUIDE)} | {name: words(ROOT / name) for name in ("README.md", "ARCHITECTURE.md")}
    assert {name: count for name, count in counted.items() if count > WORDS[name]} == {}


def test_pages_are_in_plain_words():
    found = {str(page.relative_to(ROOT)): faults(markdown_prose(page.read_text())) for page in PAGES}
    assert {page: wrong for page, wrong in found.items() if wrong} == {}


def test_modules_are_in_plain_words():
    found = []
    for module in MODULES:
        text, place = module.read_text(), module.relative_to(ROOT)
        found += [f"{place}:{line}: {fault}" for line, prose in python_prose(text) for fault in faults(prose)]
        found += [f"{place}:{line}: 3: a verb first: {said!r}" for line, said in without_verb(text)]
    assert found == []


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ("1", "The value, or `None` where the game has none."),
        ("1", "Elsewhere it is *empty\nwhere there is* no text."),
        ("2", "Who reads nothing and goes right succeeds in 28%."),
        ("2", "- It is paid to whoever moves last."),
        ("4", "They differ. Of the rest, two are alike."),
        ("4", "- Of the episodes most are short."),
        ("5", "The run goes on after that."),
        ("5", "Games are on the [shelf](shelf.md)."),
        ("7", "The rules are what\nnobody knows."),
    ],
)
def test_faults_are_found(rule, text):
    assert {fault[0] for fault in faults(markdown_prose(text))} == {rule}


def test_code_and_good_sentences_pass():
    page = "A folder where runs lie, of course. Who plays?\n\n```sh\nls shelf\n```\n\n`nobody` is a player who moves."
    assert faults(markdown_prose(page)) == []


def test_docstrings_and_comments_are_prose():
    module = '"""Rules."""\n\ndef f():\n    """What nobody knows."""\n    # `x` where none is\n    return "nobody"\n'
    found = [(line, fault[0]) for line, prose in python_prose(module) for fault in faults(prose)]
    assert found == [(4, "7"), (5, "1"), (5, "1")]
    assert list(without_verb(module)) == [(3, "What nobody knows.")]
