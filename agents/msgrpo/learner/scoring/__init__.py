"""Log-probabilities and entropies of the tokens of a micro-batch, with a gradient.

``scorer`` scores, ``packing`` deals steps to processes and turns them into token trees or padded rows, ``logprobs``
never holds the ``tokens x vocabulary`` matrix, and ``tree_attention`` is FlexAttention in those trees.
"""
