"""Numbers and episodes for people: tables, the page, replays in the terminal, exports.

``document_of`` makes one document of results. ``board`` declares its tables, each a ``table.Table``: columns, rows and
``notes``. ``draw`` writes them in a terminal, as Markdown and in notebooks, ``page`` as HTML, ``summary`` in few lines.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
