"""Rewards, credit, draws, filters, surrogates, task samplers and presets of neighbouring papers, for the trainer.

Entry points of ``textbench-research`` name them. docs/research/credit/methods.md has their sources.
"""

from collections.abc import Mapping
from typing import Any

from agents.msgrpo import Variant

DIRECT_APO = Variant("vine", {"baseline": "mean", "rollouts": 16})
"""The step-level method of arXiv 2412.18279 over the samples of a state, which are visits and the sampler's branches.

Our reading: ``V`` is the mean of 16 fresh episodes, where the paper trains a critic on them. As in the paper, all of it
is offline if a run has one iteration with many ``update_passes``. Its loss is ``surrogate = "direct_apo"``.
"""
ENTROPY_TREE = Variant("tree", {"choose": "entropy", "rounds": 2})

_BY_CREDIT = ("riskpo", "adora", "rae", "hgpo", "g2po", "ecpo", "beacon", "salt",
              "mt_grpo", "marshal", "empg", "igpo", "hcapo", "ppo_bilevel", "istar")  # fmt: skip
PRESETS: Mapping[str, Mapping[str, Any]] = {
    **{name: {"credit": name} for name in _BY_CREDIT},
    **{name: {"reward": name} for name in ("empo", "otc", "regret")},
    **{name: {"surrogate": name} for name in ("nft", "minpro", "llds", "apo")},
    **{name: {"task_sampling": name} for name in ("pcl", "ghpo")},
    # its credit has no bias if all episodes are learnt from
    "subpo": {"reward": "coverage", "credit": "rtg", "episode_sampling": "off"},
    "gtalign": {"reward": "gtalign"},  # it also wants answers with payoffs, unless its matrix_weight is 0
    "gagpo": {"credit": "gagpo", "surrogate": "gspo", "loss_normalizer": "response"},
    "tree_grpo": {"task_sampling": "tree", "credit": "tree_grpo"},
    "at2po": {"task_sampling": "entropy_tree", "credit": "at2po", "surrogate": "atpo", "loss_normalizer": "response"},
    # its loss is that of a response
    "direct_apo": {
        "task_sampling": "branch",
        "credit": "direct_apo",
        "surrogate": "direct_apo",
        "loss_normalizer": "step",
    },
    "sapo": {"surrogate": "sapo", "loss_normalizer": "response"},
    # what all pairs on policy come to; it only decides what is drawn
    "p3o": {"credit": "rloo", "surrogate": "p3o", "loss_normalizer": "episode"},
    "starpo_s": {"group_filter": "starpo_s", "clip_high": 0.28},
    "ragen2": {"group_filter": "ragen2"},
    "pf_ppo": {"episode_sampling": "pf_ppo"},
    # it also wants prompts with subgoals: prompt_file = "subgoals"
    "hiper": {"response_mode": "think", "credit": "hiper"},
}
"""Settings of the papers' methods; docs/research/credit/methods.md has the sources."""
