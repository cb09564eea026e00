"""The social statistics of a game of several players: efficiency, equality, sustainability and peace.

They are those of Perolat et al., "A multi-agent reinforcement learning model of common-pool resource appropriation"
(NeurIPS 2017, section 2.3), as arXiv 2603.19453 uses them, with one difference: equality is undefined where the
returns sum to 0 or less, and is then left out. There it would be 1, the best value, for players who all lost.
"""

from collections.abc import Sequence

from textgames.social.commons.state import Tally


def social_statistics(tallies: Sequence[Tally], rounds: int) -> dict[str, float]:
    """The statistics of ``n`` players over ``T`` rounds with returns ``R_i``; what is undefined is left out.

    * efficiency: ``sum R / T``, the reward of all per round;
    * equality: ``1 - sum_ij |R_i - R_j| / (2 n sum R)``, only where ``sum R > 0``; below 0 where costs leave some with
      a negative return;
    * sustainability: the mean, over the players who were ever paid more than 0, of the mean number of the rounds in
      which they were; rounds are numbered from 0;
    * peace: ``(n T - rounds missed) / T``, from 0 to n.
    """
    if not rounds:
        return {}
    n = len(tallies)
    returns = [tally.total for tally in tallies]
    total = sum(returns)
    statistics = {"efficiency": total / rounds}
    if total > 0:
        statistics["equality"] = 1 - sum(abs(a - b) for a in returns for b in returns) / (2 * n * total)
    times = [tally.paid_at / tally.paid for tally in tallies if tally.paid]
    if times:
        statistics["sustainability"] = sum(times) / len(times)
    statistics["peace"] = (n * rounds - sum(tally.missed for tally in tallies)) / rounds
    return statistics
