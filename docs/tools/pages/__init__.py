"""What of the documentation is made from the code and from measured files that the repository keeps.

Each module whose files are made has ``files()``, which gives every one with the text that it should have.
``python docs/tools/make_pages.py`` writes them; the tests hold what is committed against what would be made. Pages of
methods have ``write_pages()`` instead, which docs/conf.py calls for the site.
"""
