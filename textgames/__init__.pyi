from . import conformance, solving, wrappers
from .environments.rules import InvalidAction, layout_generator
from .extras import install_command, missing_packages
from .ladders import register_ladder
from .names import did_you_mean
from .open_spiel import openspiel
from .plugins import loaded
from .registry import aec_env, game_of, parallel_env, register, registered_ids, settings_of
from .rounds import rounds_of_play
from .scenarios import SCENARIOS, SUITES, TRAINING_SEEDS, Scenario, known_scenario, why_unknown
from .settings import check_whole, explained, taken_by
from .texts.actions import ActionNames, Unreadable, UnreadableReason, behind_thoughts, parse_action
from .tsmg import TSMG, Action, GameError, Outcome, Player
from .twins import has_twins, register_vocabulary, twin_of
from .yardsticks import Yardstick, find_yardstick, register_yardstick

__all__ = [
    "SCENARIOS",
    "SUITES",
    "TRAINING_SEEDS",
    "TSMG",
    "Action",
    "ActionNames",
    "GameError",
    "InvalidAction",
    "Outcome",
    "Player",
    "Scenario",
    "Unreadable",
    "UnreadableReason",
    "Yardstick",
    "aec_env",
    "behind_thoughts",
    "check_whole",
    "conformance",
    "did_you_mean",
    "explained",
    "find_yardstick",
    "game_of",
    "has_twins",
    "install_command",
    "known_scenario",
    "layout_generator",
    "loaded",
    "missing_packages",
    "openspiel",
    "parallel_env",
    "parse_action",
    "register",
    "register_ladder",
    "register_vocabulary",
    "register_yardstick",
    "registered_ids",
    "rounds_of_play",
    "settings_of",
    "solving",
    "taken_by",
    "twin_of",
    "why_unknown",
    "wrappers",
]
