"""Surrogate losses: what an advantage becomes in the loss of each response token.

See :class:`agents.msgrpo.surrogates.tokens.Surrogate`.
"""

from typing import TYPE_CHECKING

from agents.msgrpo.plugins import Registry

if TYPE_CHECKING:
    from agents.msgrpo.surrogates.tokens import Surrogate

SURROGATES: "Registry[Surrogate]" = Registry(
    "surrogate",
    {
        "ppo": "agents.msgrpo.surrogates.tokens:PPO",
        "gspo": "agents.msgrpo.surrogates.tokens:GSPO",
        "cispo": "agents.msgrpo.surrogates.tokens:CISPO",
    },
)

register_surrogate = SURROGATES.register
