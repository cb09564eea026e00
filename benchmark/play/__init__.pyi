from .agents.agent_folder import (
    AGENT_NAME,
    approve_agent_folder,
    from_anywhere,
    is_agent_folder,
    placed,
    with_agent_folders,
    write_agent_folder,
)
from .agents.choice import PlannedRun, plan_run
from .agents.objects import AgentSpec, AgentTable
from .agents.options import secrets_of, typed_option, with_agent_options
from .agents.players import OWN_PLAYERS, Players, card_of, is_shipped, load_one, load_policy, load_table, unloaded
from .manifest import innermost
from .options import (
    OF_ONE_AGENT,
    OPTIONS,
    RunOptions,
    flag_of,
    without_spec,
)
from .runner import Limits, Stopped
from .session import open_session
from .until import BATCH

__all__ = [
    "AGENT_NAME",
    "BATCH",
    "OF_ONE_AGENT",
    "OPTIONS",
    "OWN_PLAYERS",
    "AgentSpec",
    "AgentTable",
    "Limits",
    "PlannedRun",
    "Players",
    "RunOptions",
    "Stopped",
    "approve_agent_folder",
    "card_of",
    "flag_of",
    "from_anywhere",
    "innermost",
    "is_agent_folder",
    "is_shipped",
    "load_one",
    "load_policy",
    "load_table",
    "open_session",
    "placed",
    "plan_run",
    "secrets_of",
    "typed_option",
    "unloaded",
    "with_agent_folders",
    "with_agent_options",
    "without_spec",
    "write_agent_folder",
]
