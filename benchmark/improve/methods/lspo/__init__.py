"""Latent space policy optimisation of what is said in Werewolf (Xu et al., arXiv 2502.04686).

``own play -> speeches -> clusters -> a finite game -> counterfactual regret -> preferences -> model``, again and again.
"""
