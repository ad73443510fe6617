"""Capture: from a request to a trace, for the twins and for a user's kernel: :func:`capture`."""

from hwkernels.capture.pipeline import capture, compile_builds
from hwkernels.capture.request import CaptureRequest
from hwkernels.capture.source_subject import SourceSubject
from hwkernels.capture.twin_subject import TwinSubject

__all__ = ["CaptureRequest", "SourceSubject", "TwinSubject", "capture", "compile_builds"]
