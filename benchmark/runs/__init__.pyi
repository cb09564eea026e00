from .authorship import RERUN, taken_on_trust
from .folder import RunFolder, folder_name, write_atomically
from .manifest import MANIFEST_NAME, MOST_AGENTS, MOST_SCENARIOS, MOST_SEEDS, CardShape, strict_json
from .plan import Plan, find_scenarios, num_players
from .provenance import code_version, now
from .record import STRICT

__all__ = [
    "MANIFEST_NAME",
    "MOST_AGENTS",
    "MOST_SCENARIOS",
    "MOST_SEEDS",
    "RERUN",
    "STRICT",
    "CardShape",
    "Plan",
    "RunFolder",
    "code_version",
    "find_scenarios",
    "folder_name",
    "now",
    "num_players",
    "strict_json",
    "taken_on_trust",
    "write_atomically",
]
