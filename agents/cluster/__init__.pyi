from .cluster import Cluster
from .rollout import Pace

__all__ = [
    "Cluster",
    "Pace",
]
