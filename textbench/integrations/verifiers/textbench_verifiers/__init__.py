"""The games of textbench as a taskset of verifiers: ``vf-eval textbench --env.taskset.scenario frozen-lake``.

verifiers finds both names in the module ``textbench`` of the main distribution. :mod:`textbench_self_play` has the
environment in which every seat is an agent, and :mod:`textbench_turns` the harness by which all of them send turns.
"""

from textbench_verifiers.env import TextbenchEnv
from textbench_verifiers.taskset import TextbenchTaskset

__all__ = ["TextbenchEnv", "TextbenchTaskset"]
