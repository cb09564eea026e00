"""The leaderboard page: one static file, drawn from a document of ``benchmark.view_data``.

``document (every number) -> tables (rows to read) + pack (episodes to replay) -> page (the file) -> server``.
"""

from benchmark.report.page import render_page, write_page

__all__ = ["render_page", "write_page"]
