"""The critic: an optional model of values with an optimiser of its own, for methods that need ``values``.

A method of credit (or a task sampler) that has ``"values"`` in ``needs`` declares what it wants to be told::

    heads = {"state": "step"}                        # V(s_t), read at the last token of the prompt
    heads = {"token": "token"}                       # one value before each response token
    heads = {"low": "token", "high": "step"}         # several at once, from one backbone

It finds the values in ``Trajectory.values`` (the first head) and ``Trajectory.head_values``, and returns what they are
to become as ``Credit.value_targets``; NaN stands where a head has nothing to learn. A sampler does the same with a
method ``value_targets(batch)``. Without such a method no critic is made, and nothing of this costs anything.

A method with ``"reward_model"`` in ``needs`` has a reward model in the critic's place (:mod:`.reward_model`): it finds
``Trajectory.log_ratios`` and returns :class:`Preferences` as ``Credit.preferences``.
"""

from agents.msgrpo.credit.batch import Heads

DEFAULT_HEADS: Heads = {"state": "step"}
"""The heads of a method that needs values and doesn't say which."""
