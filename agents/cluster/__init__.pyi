from .cluster import Cluster as Cluster
from .rollout import Pace as Pace
