"""Kernels are checked as they are compiled: ``PIPESIM=check``, or ``pipesim.install()`` (``docs/launches.md``).

What runs in the process that compiles is the standard library and little else: a compiler's hook writes what it knows
of a kernel into a folder (``start.py``, ``compilers.py``). The first process of a tree reads that folder in a thread
(``checker.py``) and gives each kernel to one other process (``worker.py``), which completes its launch (``guess.py``).
"""
