"""Magnetic mirror descent in small games of hidden information: self-play that is pulled towards a magnet.

Sokota et al., "A Unified Approach to Reinforcement Learning, Quantal Response Equilibria, and Two-Player Zero-Sum
Games" (arXiv 2206.05825, equation 9). With a magnet that stands still it converges to a mixture of equilibrium and
magnet; with one that follows the policy, to an equilibrium. It is computed here for all information sets at once.
"""

import numpy as np

from textgames.solving import Behaviour, GameTree, normalised, sequence_values


def mirror_step(tree: GameTree, behaviour: Behaviour, magnet: Behaviour, *, rate: float, pull: float) -> Behaviour:
    """Return the next policy, in proportion to ``(pi(a) magnet(a)^(rate pull) exp(rate Q(a)))^(1 / (1 + rate pull))``.

    ``Q`` is the return that a player expects from an action while all follow the policy, and taken for equal if the
    others' play never leads there. The ``rate`` is per unit of return, the ``pull`` in units of return per nat.
    """
    following = []
    for decisions, own, held, values in zip(
        tree.decisions, behaviour, magnet, sequence_values(tree, behaviour), strict=True
    ):
        if not decisions.sets:
            following.append(own)
            continue
        with np.errstate(divide="ignore"):  # an action that is never played stays so
            magnetic = rate * pull * np.log(held) if pull else 0.0
            scores = (np.log(own) + rate * np.nan_to_num(values) + magnetic) / (1 + rate * pull)
        largest = np.maximum.reduceat(scores[1:], decisions.firsts - 1)[decisions.set_of]
        following.append(normalised(decisions, np.concatenate([[1.0], np.exp(scores[1:] - largest)])))
    return tuple(following)


def moved(behaviour: Behaviour, towards: Behaviour, share: float) -> Behaviour:
    """Return a policy that has come so far towards another one, at each decision by itself."""
    return tuple((1 - share) * own + share * other for own, other in zip(behaviour, towards, strict=True))


def descended(
    tree: GameTree, behaviour: Behaviour, *, steps: int, rate: float, pull: float, follow: float
) -> Behaviour:
    """Return where so many steps from a policy end, with a magnet that begins there and comes after it.

    The ``rate`` of the first step falls to 0, and so does ``follow``, the magnet's share of the way to the policy.
    """
    magnet = behaviour
    for left in np.linspace(1, 0, steps, endpoint=False):
        before = behaviour
        behaviour = mirror_step(tree, behaviour, magnet, rate=rate * left, pull=pull)
        magnet = moved(magnet, before, follow * left)
    return behaviour
