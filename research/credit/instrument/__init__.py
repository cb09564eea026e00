"""How good credit is: methods of credit assignment measured against the advantage that is true.

``game, policy -> all that may happen -> all that the policy may answer -> true advantages and the exact gradient``, and
beside them ``batches of episodes -> a method's credit``. :func:`~research.credit.measure` compares the two, and an
:class:`~research.credit.Instrument` keeps everything for more questions about the same batches.
"""
