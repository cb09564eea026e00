"""A training run around the algorithm.

``health`` decides whether the run is worth continuing, ``evaluating`` measures how good the model is by now, ``saving``
keeps the run on disk, and ``reporting`` shows it meanwhile.
"""
