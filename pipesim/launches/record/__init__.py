"""Kernels recorded in the process that launches them.

:mod:`.frameworks` is asked at each launch, :mod:`.launches` has one launch take place with an instrumented kernel and a
buffer (:mod:`.prepared` makes the kernel), and :mod:`.gather` makes traces of what they left.
"""
