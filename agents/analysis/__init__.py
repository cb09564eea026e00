"""What a policy does and what it gives away, in games that are small enough to say so.

Begin at :mod:`agents.analysis.action_probabilities`, the distribution over actions in one position. On it stand
``inspection`` (what a policy wants at every step of an episode, and what each action is worth), ``regret`` (the value
lost per decision) and ``exploitability`` (what it loses to the opponent that knows it best).
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
