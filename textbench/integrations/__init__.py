"""Adapters: the games inside the tools that people already use, a folder a tool, each with an extra of its name.

If the tool has the loop they play episodes by :class:`agents.EpisodeSession`, and if it leaves the loop to us by
:func:`agents.rollout`; what a folder adds is how its tool asks and is answered. A tool's package is imported when its
folder is, and by nothing else.
"""
