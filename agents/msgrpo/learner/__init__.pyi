from .distributed import Processes
from .prepare import autocast_dtype, copy_of_trained, prepare_model, product_dtype
from .scoring.packing import MicroBatch, longest_tree, pack, tree_mask
from .scoring.scorer import TokenScorer, choose_ways, score_rows, score_with
from .scoring.tree_attention import random_trees, tree_attention, tree_blocks, why_no_tree_attention
from .update import Learner, make_optimizer

__all__ = [
    "Learner",
    "MicroBatch",
    "Processes",
    "TokenScorer",
    "autocast_dtype",
    "choose_ways",
    "copy_of_trained",
    "longest_tree",
    "make_optimizer",
    "pack",
    "prepare_model",
    "product_dtype",
    "random_trees",
    "score_rows",
    "score_with",
    "tree_attention",
    "tree_blocks",
    "tree_mask",
    "why_no_tree_attention",
]
