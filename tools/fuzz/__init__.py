"""Fuzzers: input that means harm or is merely wrong, by seed and by the structure of each kind of input.

``cases``: what a case is and what may come back of it. ``runner``: one case in this process. ``worker``: cases in
processes with limits. ``naive``: engines of a few lines that confirm a result. ``kinds``: a module for each kind.
"""
