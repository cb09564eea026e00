"""Studies, instruments, and methods of neighbouring papers: a distribution beside the product.

* :mod:`research.credit`: the instrument that measures credit, ``textbench credit``, and the study of credit;
* :mod:`research.reproduction`: the paper's experiment in miniature, ``textbench reproduce``; the same with a pretrained
  model, ``--config smollm2``; and how the tiny models that ship were made, ``python -m research.reproduction.tiny``;
* :mod:`research.jobs`: what all studies share: jobs whose results are on disk, done in several processes;
* :mod:`research.house`: how far one value travels through the code, and gates that hold a redesign to what was before;
* ``research/perf``: scripts that measure speeds, memory and strength beside named peers.

This is the distribution ``textbench-research`` (``pip install -e research``). It imports the product's public names and
is imported by nothing of the product, to which it adds its commands, players and methods by entry points.
"""
