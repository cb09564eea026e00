"""Latent space policy optimisation of what is said in Werewolf (Xu et al., arXiv 2502.04686).

``own play -> speeches -> clusters -> a finite game -> counterfactual regret -> preferences -> model``, again and again.

It departs from the paper: regrets stand in a table over small information sets; only what is said is optimised, votes
and nights are chosen as the agent was seen to choose; speeches are told apart by their letters; their number of
clusters stays the same; and a cluster is only preferred if its gain can't be chance.
"""
