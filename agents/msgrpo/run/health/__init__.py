"""Is a run worth beginning, and worth going on with?

In the order of a run: ``checks`` look before the first episode, ``preflight`` at a few episodes before the first
update, ``canary`` compares engine and learner after every update, and ``watch`` sees in the metrics that nothing is
learnt any more. ``advice`` is what a person is told then.
"""
