"""The paper's experiment with a pretrained model: ``textbench reproduce --config smollm2``.

``settings -> jobs (start, train, play) -> findings -> report``, on the machinery of :mod:`research.jobs`. The baseline
of the field is trained by :mod:`trl`, and :mod:`shrinking` makes the adapters that ship.
"""
