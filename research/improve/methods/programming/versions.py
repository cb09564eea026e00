"""The choice of the version that is written anew: the best so far, or one by a search of the tree of versions."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from research.improve.methods.programming.rules_explain import Explained

EXPLORATION = 0.5
"""The weight of the bound, in units of the share of the steps that a version explains."""


@dataclass(frozen=True, eq=False)
class Version:
    """A program that was written."""

    action: str  # how it was asked for: ``write``, ``better`` or ``fix``
    parent: "Version | None"  # the one that it was to be better than
    tested: Explained
    share: float  # of the steps that it explains


Choice = tuple[str, Version | None]
"""The question that asks for the next version, and the version that it is about."""


def chain(found: Sequence[Version]) -> Choice:
    """Choose the best so far, the last of equals, so that a repair continues."""
    return _after(best_of(found))


def best_of(found: Sequence[Version]) -> Version | None:
    """Return the version that explains most, the last of equals; one that is a program, if there is one."""
    return max(reversed(found), key=lambda one: (one.tested.file is not None, one.share), default=None)


def tree(found: Sequence[Version]) -> Choice:
    """Choose a place in the tree of versions by upper confidence bounds.

    Our reading of GIF-MCTS (arXiv 2405.15383), whose nodes are programs and whose actions are to generate a new one,
    to improve one by what it predicts wrongly, and to fix one that fails: at every node the versions below it compete
    with one more that is written after the node itself. Each is worth the mean share of steps that those below explain.
    """
    node: Version | None = None
    while True:
        children = [one for one in found if one.parent is node]
        if not children:
            return _after(node)
        below = [[one.share for one in found if _descends(one, child)] for child in children]
        total = sum(map(len, below))
        bounds = [
            -math.inf if child.tested.file is None else _bound(shares, total)
            for child, shares in zip(children, below, strict=True)
        ]
        if _bound([child.share for child in children], total) > max(bounds):
            return _after(node)
        node = children[bounds.index(max(bounds))]


def _after(version: Version | None) -> Choice:
    if version is None or version.tested.file is None:
        return "write", None
    return ("better" if version.tested.runs else "fix"), version


def _descends(version: Version | None, ancestor: Version) -> bool:
    return version is ancestor or (version is not None and _descends(version.parent, ancestor))


def _bound(shares: Sequence[float], total: int) -> float:
    return sum(shares) / len(shares) + EXPLORATION * math.sqrt(math.log(total) / len(shares))


SEARCHES: dict[str, Callable[[Sequence[Version]], Choice]] = {"chain": chain, "tree": tree}
"""The ways to search for versions, by name."""
