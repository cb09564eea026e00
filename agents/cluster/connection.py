"""Reaching a Ray cluster, and leaving it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

ANY = "any"
"""The address that leaves the choice to Ray: ``$RAY_ADDRESS``, a cluster of this machine, or else a new one on it."""

CONNECTION_SECONDS = 10.0


class ClusterError(RuntimeError):
    """The cluster can't be reached or can't do what is asked of it; one sentence for a person."""


def lacking_packages() -> str:
    """Return the packages of a cluster that aren't installed, with the command; empty if nothing is missing."""
    from textgames.extras import missing_packages  # here, since textbench --help can do without gymnasium

    advice = missing_packages("ray", extra="ray")
    return f"a cluster needs {advice}" if advice else ""


@contextmanager
def connected(address: str = ANY) -> Iterator[None]:
    """Be connected to a cluster, and leave it at the end, unless this process was connected before.

    ``address`` is ``"host:6379"``, ``"auto"`` (a running cluster), ``"local"`` (a new one on this machine), or
    :data:`ANY`. A ClusterError says that Ray isn't installed, or that there is no such cluster.
    """
    if lacking := lacking_packages():
        raise ClusterError(lacking)
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # no reports from a cluster that starts here
    import socket  # here, as textbench --help reads ANY

    import ray

    if ray.is_initialized():  # a notebook's: it stays when we go
        yield
        return
    try:
        host, _, port = address.rpartition(":")
        if port.isdecimal() and "/" not in host:  # if nothing listens there, Ray itself would try for minutes
            socket.create_connection((host, int(port)), timeout=CONNECTION_SECONDS).close()
        ray.init(
            address=None if address == ANY else address,
            log_to_driver=False,  # what players print on workers is theirs; errors come back as such
            logging_level="ERROR",
            configure_logging=True,
        )
    except (ConnectionError, ValueError, RuntimeError, OSError) as error:
        reason = " ".join(str(error).split()).partition(". ")[0]
        raise ClusterError(
            f"there is no Ray cluster at {address!r} ({reason}); start one with: ray start --head, or leave the "
            "address out to use a temporary cluster on this machine"
        ) from None
    try:
        yield
    finally:
        ray.shutdown()


def workers_that_fit(need: dict[str, float]) -> int:
    """Return how many workers that need ``{resource: amount}`` the machines that are alive have room for."""
    import ray

    rooms = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    wanted = {name: amount for name, amount in need.items() if amount}
    return sum(min(int(room.get(name, 0.0) // amount) for name, amount in wanted.items()) for room in rooms)
