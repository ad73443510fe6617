"""Kernels recorded in the process that launches them.

The observer asks :mod:`.launches` before each launch, which has one take place with an instrumented kernel and a
buffer. The command that started the process makes the kernel (:mod:`.requests`, :mod:`.service`, :mod:`.preparation`),
and :mod:`.gather` makes traces of what was left.
"""
