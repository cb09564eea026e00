"""The games in TRL's trainers (extra ``trl``).

Two ways to train with ``trl.GRPOTrainer``, and what each of them is given:

* :class:`StepRollouts` is a ``rollout_func``: every step is a sample of its own, whose prompt has the rules and the
  observation and no history, and is credited with its episode's return, as MS-GRPO credits it;
* :func:`game_environment` makes an ``environment_factory``: an episode is one growing conversation of tool calls.

Both take :func:`start_dataset`, in which every row is a group: its members begin at the same start. ``python -m
textbench.integrations.trl`` trains a model with either. Warm starts for ``SFTTrainer`` and ``DPOTrainer`` are written
by ``textbench export``.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
