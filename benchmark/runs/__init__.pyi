from .authorship import RERUN, taken_on_trust
from .folder import RunFolder, check_file_place, folder_name, write_atomically
from .manifest import MANIFEST_NAME, MOST_AGENTS, MOST_SCENARIOS, MOST_SEEDS, CardShape, strict_json
from .plan import PAPER_SCENARIOS, Plan, find_scenario, find_scenarios, num_players
from .provenance import code_version, data_digest, file_digest, now, package_versions
from .record import STRICT, paid_tokens
from .replay import Replay, ending, replay_if_unchanged, requests_of

__all__ = [
    "MANIFEST_NAME",
    "MOST_AGENTS",
    "MOST_SCENARIOS",
    "MOST_SEEDS",
    "PAPER_SCENARIOS",
    "RERUN",
    "STRICT",
    "CardShape",
    "Plan",
    "Replay",
    "RunFolder",
    "check_file_place",
    "code_version",
    "data_digest",
    "ending",
    "file_digest",
    "find_scenario",
    "find_scenarios",
    "folder_name",
    "now",
    "num_players",
    "package_versions",
    "paid_tokens",
    "replay_if_unchanged",
    "requests_of",
    "strict_json",
    "taken_on_trust",
    "write_atomically",
]
