"""The corpus of real kernels: what builds each family, for ``tools/ptx_corpus.py``."""
