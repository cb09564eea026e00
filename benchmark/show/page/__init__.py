"""The leaderboard page: one static file, drawn from a document of ``benchmark.show.document_of``.

``document (every number) -> tables (rows to read) -> page (the file, with episodes to replay) -> server``.
"""

from benchmark.show.page.page import render_page, write_page

__all__ = ["render_page", "write_page"]
