from .agents.agent_folder import placed
from .agents.choice import PlannedRun, plan_run
from .agents.objects import AgentSpec, AgentTable
from .agents.options import with_agent_options
from .agents.players import OWN_PLAYERS, card_of, is_shipped, load_policy
from .options import (
    OF_ONE_AGENT,
    OPTIONS,
    RunOptions,
    add_options,
    checked_options,
    flag_of,
    read_options,
    without_spec,
)
from .until import BATCH

__all__ = [
    "BATCH",
    "OF_ONE_AGENT",
    "OPTIONS",
    "OWN_PLAYERS",
    "AgentSpec",
    "AgentTable",
    "PlannedRun",
    "RunOptions",
    "add_options",
    "card_of",
    "checked_options",
    "flag_of",
    "is_shipped",
    "load_policy",
    "placed",
    "plan_run",
    "read_options",
    "with_agent_options",
    "without_spec",
]
