"""The tables of a board, said once and written as terminal, Markdown, HTML and page."""
