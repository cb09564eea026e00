"""What of the documentation is made from the code: parts of the games' pages, pages of methods, animated pictures.

``python docs/tools/make_pages.py`` makes all of it; the tests hold what is committed against what would be made.
"""
