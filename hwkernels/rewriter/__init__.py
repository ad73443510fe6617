"""Any kernel recorded: the recorder is put into a kernel's PTX, and its records become a trace.

``instrument`` rewrites, ``assemble`` makes a cubin, ``decode_records`` reads the buffer after the launch.
"""

from hwkernels.rewriter.assemble import AssembledCubin, assemble
from hwkernels.rewriter.instrument import RewrittenPtx, instrument
from hwkernels.rewriter.options import Encoding, Level, RewriteOptions
from hwkernels.rewriter.trace import decode_records

__all__ = [
    "AssembledCubin", "Encoding", "Level", "RewriteOptions", "RewrittenPtx", "assemble", "decode_records", "instrument",
]  # fmt: skip
