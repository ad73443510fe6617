"""Machine code of sm_90 and sm_100: the instructions that synchronise, and the integer ones that lead to them.

NVIDIA does not describe the encoding. Each field was read off kernels that were compiled for the purpose and checked
against the toolkit's disassembler (tests/coredump/test_sass.py has instructions of every form, with its text).
"""
