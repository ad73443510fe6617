"""Kernels are checked as they are compiled: ``PIPESIM=check``, or ``pipesim.install()`` (``docs/launches.md``)."""
