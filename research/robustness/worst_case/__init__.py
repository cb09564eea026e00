"""Play if the rules, or the reward, aren't quite those that were told: ``textbench robust``.

``solver`` has the balls of chances and their exact worst case, ``perturbed`` the game that is played under them,
``dr_rpo`` a policy optimised against them, ``rewards`` the jumps of optimal policies if the reward moves, and a reward
that is tuned by the policy trained under it.
"""
