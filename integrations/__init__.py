"""Adapters: the games inside the tools that people already use, a folder a tool, each with an extra of its name.

All of them play episodes by :class:`agents.EpisodeSession`; what a folder adds is how its tool asks and is answered. A
tool's package is imported when its folder is, and by nothing else.
"""
