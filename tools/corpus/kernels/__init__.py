"""Kernels of the corpus, in the languages of their families; each file runs in its family's environment."""
