"""Capture: from a request to a trace, for the twins and for a user's kernel, by :func:`capture`.

One pipeline (:mod:`.pipeline`): the request is checked (:mod:`.request`), its records get a place in memory
(:mod:`.plan`), its builds are compiled, it is launched (:mod:`.launches`), and what was recorded becomes a trace
(:mod:`.trace`), if need be in a separate process (:mod:`.subprocess_capture`). What differs between kinds of kernels is
said by a request's subject: :mod:`.twin_subject`, :mod:`.source_subject` or :mod:`.program_subject`.
"""

from hwkernels.capture.pipeline import capture, compile_builds
from hwkernels.capture.program_subject import ProgramSubject
from hwkernels.capture.request import CaptureRequest
from hwkernels.capture.source_subject import SourceSubject
from hwkernels.capture.twin_subject import TwinSubject

__all__ = ["CaptureRequest", "ProgramSubject", "SourceSubject", "TwinSubject", "capture", "compile_builds"]
