"""The tests of pipesim and hwkernels. A package, so that tests and tools can import ``tests.support``."""
