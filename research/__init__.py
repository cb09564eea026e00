"""Studies, instruments, and methods of neighbouring papers: a distribution beside the product.

* :mod:`research.reproduce`: the paper's experiment in miniature, ``textbench reproduce``;
* :mod:`research.pretrained`: the same with a pretrained model, ``--config smollm2``;
* :mod:`research.credit`: the study of credit, ``--config credit``, by the instrument of ``textbench credit``;
* :mod:`research.jobs`: what these three have in common: jobs whose results are on disk, done in several processes;
* :mod:`research.tiny`: how the tiny models that ship were made and described, ``python -m research.tiny``;
* :mod:`research.house`: how far one value travels through the code, and gates that hold a redesign to what was before;
* ``research/perf``: scripts that measure speeds, memory and strength beside named peers.

This is the distribution ``textbench-research`` (``pip install -e research``). It imports the product's public names and
is imported by nothing of the product, to which it adds its commands, players and methods by entry points.
"""
