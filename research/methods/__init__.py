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

PRESETS: Mapping[str, Mapping[str, Any]] = {
    "riskpo": {"credit": "riskpo"},
    "adora": {"credit": "adora"},
    "rae": {"credit": "rae"},
    "hgpo": {"credit": "hgpo"},
    "g2po": {"credit": "g2po"},
    "gagpo": {"credit": "gagpo", "surrogate": "gspo", "loss_normalizer": "response"},
    "beacon": {"credit": "beacon"},
    "salt": {"credit": "salt"},
    "tree_grpo": {"task_sampling": "tree", "credit": "tree_grpo"},
    "at2po": {"task_sampling": "entropy_tree", "credit": "at2po", "surrogate": "atpo", "loss_normalizer": "response"},
    "mt_grpo": {"credit": "mt_grpo"},
    "marshal": {"credit": "marshal"},
    "empg": {"credit": "empg"},
    "igpo": {"credit": "igpo"},
    "empo": {"reward": "empo"},
    "otc": {"reward": "otc"},
    # it also wants answers with payoffs, unless its matrix_weight is 0
    "gtalign": {"reward": "gtalign"},
    "hcapo": {"credit": "hcapo"},
    # its loss is that of a response
    "direct_apo": {
        "task_sampling": "branch",
        "credit": "direct_apo",
        "surrogate": "direct_apo",
        "loss_normalizer": "step",
    },
    "sapo": {"surrogate": "sapo", "loss_normalizer": "response"},
    "nft": {"surrogate": "nft"},
    # what all pairs on policy come to; it only decides what is drawn
    "p3o": {"credit": "rloo", "surrogate": "p3o", "loss_normalizer": "episode"},
    "minpro": {"surrogate": "minpro"},
    "llds": {"surrogate": "llds"},
    "apo": {"surrogate": "apo"},
    "starpo_s": {"group_filter": "starpo_s", "clip_high": 0.28},
    "ragen2": {"group_filter": "ragen2"},
    "pf_ppo": {"episode_sampling": "pf_ppo"},
    "ppo_bilevel": {"credit": "ppo_bilevel"},
    "istar": {"credit": "istar"},
    # it also wants prompts with subgoals: prompt_file = "subgoals"
    "hiper": {"response_mode": "think", "credit": "hiper"},
    "pcl": {"task_sampling": "pcl"},
    "ghpo": {"task_sampling": "ghpo"},
}
"""Settings of the papers' methods; docs/research/credit/methods.md has the sources."""
