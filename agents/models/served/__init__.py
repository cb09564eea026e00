"""Models behind servers: ``prompt -> fields (a route) -> transport -> answer -> completion``.

A :class:`~agents.models.served.pacing.Pacer` stands before the transport, and a
:class:`~agents.models.served.dialect.Dialect` knows what the server takes. Begin at :mod:`agents.models.served.model`.
"""
