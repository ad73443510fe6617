"""The recorder in a kernel's source: a header of macros, the table that names its sites, and what reads its records.

For a kernel whose PTX cannot be given (docs/own-kernel.md), and for our twins. It is not extended any more: any kernel
with PTX is recorded by :mod:`hwkernels.rewriter`.
"""
