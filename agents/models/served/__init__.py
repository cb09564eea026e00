"""Models behind servers: what is sent, what an answer means, when to ask again, and how fast.

``prompt -> fields (a route) -> transport -> answer -> completion``, with a :class:`~agents.models.served.pacing.Pacer`
before the transport and a :class:`~agents.models.served.dialect.Dialect` that knows what the server takes.
"""
