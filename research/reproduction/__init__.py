"""The paper's experiment in miniature, ``textbench reproduce``, on the machinery of :mod:`research.jobs`.

``settings -> jobs (pretrain, train, play, control) -> reproduction -> claims -> report``. The same with a pretrained
model is ``pretrained``; :mod:`shipping` turns a finished run into the models that the package ships.
"""
