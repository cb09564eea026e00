from .cluster import Cluster as Cluster
from .cluster import Pace as Pace
