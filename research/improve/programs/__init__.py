"""Programs that a language model has written in place of answers: run apart from everything else, and played.

``text of a program -> sandbox -> act(observation, legal_actions) | rules that are planned with``.
"""
