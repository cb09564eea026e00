"""A training run around the algorithm: where its episodes come from, and what it shows, keeps and checks.

``engine`` makes the engine that the settings name and ``episodes`` plays with it. The rest are rooms: ``health`` (is
the run worth going on with?), ``evaluating`` (how good is the model by now?), ``saving`` (what is kept on disk?) and
``reporting`` (what is told meanwhile?).
"""
