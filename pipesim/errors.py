"""Every exception that pipesim raises deliberately, each with the exit code of a command that ends with it.

A fault of the *modelled* program is never an exception: it is a value (``pipesim.model.finding``). What is raised here
is misuse of pipesim itself: a wrong parameter, a file that is not a trace, a role that drops a handle. An exception of
any other kind is a mistake in pipesim, and :func:`internal_error` says so.
"""

import traceback
from typing import Self

TRACEBACK = "PIPESIM_TRACEBACK"  #: the environment variable that asks for the traceback of an internal error
ISSUES = "the issues of pipesim's repository"  #: where a mistake in pipesim is reported


class PipesimError(Exception):
    """The base of all of them: a fact, and optionally its place, its probable cause and a correction.

    ``str(error)`` is what a person reads: the fact first, then one indented line for each other part that is known.
    """

    exit_code = 2

    def __init__(self, fact: str, *, place: str = "", cause: str = "", correction: str = "") -> None:
        super().__init__(fact)
        self.fact = fact
        self.place = place
        self.cause = cause
        self.correction = correction

    def completed(self, *, place: str = "", cause: str = "", correction: str = "") -> Self:
        """The same error, with these where it does not say so itself: what holds of everything of its kind."""
        self.place = self.place or place
        self.cause = self.cause or cause
        self.correction = self.correction or correction
        return self

    def __str__(self) -> str:
        parts = [self.fact]
        if self.place:
            parts.append(f"  at: {self.place}")
        if self.cause:
            parts.append(f"  probable cause: {self.cause}")
        if self.correction:
            parts.append(f"  try: {self.correction}")
        return "\n".join(parts)


class UsageError(PipesimError):
    """The command or the call cannot be carried out as it was written (exit code 2)."""


class UnknownProtocolError(UsageError):
    """No protocol has this name, and no file or function is found under it."""


class SeveralProtocolsError(UnknownProtocolError):
    """A file has several functions that make a protocol, and one is asked for."""


class ParameterError(UsageError):
    """A parameter has an unknown name, a value of the wrong type, or one out of range."""


class ConfigurationError(UsageError):
    """The parameters are well formed but do not fit the hardware."""


class ProtocolError(UsageError):
    """A protocol breaks a rule of the description language: its place is the author's line."""


class TooManyOperationsError(ProtocolError):
    """The roles of a protocol record more operations than a program may have."""


class RefutedKernelError(PipesimError):
    """A kernel that was compiled is refuted, and this was asked to be an error (``PIPESIM=strict``)."""

    exit_code = 1


class HandleError(ProtocolError):
    """A stage handle was dropped, released twice, or used after its release."""


class ProgramFormatError(UsageError):
    """A flat program's JSON form is damaged, foreign, or of a newer version."""


class PtxError(UsageError):
    """A PTX text cannot be read: its place is the file and the line."""


class LaunchFileError(UsageError):
    """A launch file is damaged, or does not describe a launch of this kernel."""


class CodeImageError(UsageError):
    """The code that a process loaded cannot be read: it is damaged, or of a format that is not known."""


class CoreDumpError(UsageError):
    """A core dump of a GPU is damaged, is not one, or holds nothing that can be explained."""


class ProfileError(UsageError):
    """A latency profile is unknown, damaged, or of another version."""


class ResultsFileError(UsageError):
    """A sweep's results file is damaged, in use, or of another question."""


class OutputExistsError(UsageError):
    """An output file exists and ``--force`` was not given."""


class MissingExtraError(UsageError):
    """A package that only some commands need, or of an optional extra, is not installed."""


class CompileError(PipesimError):
    """NVRTC refused a kernel; the message carries the full log (exit code 2)."""


class LimitError(PipesimError):
    """A limit of time or memory was reached before there was an answer (exit code 3)."""

    exit_code = 3


class ClusterLostError(PipesimError):
    """The cluster of a sweep was lost before there was an answer (exit code 3)."""

    exit_code = 3


class EvidenceError(PipesimError):
    """There is nothing to compare with, or what there is cannot be trusted (exit code 3)."""

    exit_code = 3


class TraceFormatError(EvidenceError):
    """A trace file is truncated, corrupted, foreign, empty, or of a newer schema."""


class ForeignFileError(TraceFormatError):
    """A sound Parquet file that is not a trace: another program's, or a trace whose metadata another program left
    out.
    """


class NoTraceError(EvidenceError):
    """No recorded trace matches the protocol and its parameters."""


class HardwareError(EvidenceError):
    """There is no usable GPU, or the launch failed."""


class KernelTrapError(HardwareError):
    """The hardware ended a launch; the CUDA context of the process is lost."""


class KernelHangError(HardwareError):
    """A launch did not end in the time it was given; it may still be running, so the process must go."""


class InternalError(PipesimError):
    """A mistake in pipesim itself (exit code 70, which sysexits.h calls EX_SOFTWARE)."""

    exit_code = 70


def internal_error(error: BaseException) -> InternalError:
    """An exception that pipesim does not expect, as an error with a place, and with where to report it."""
    frames = traceback.extract_tb(error.__traceback__)
    return InternalError(
        f"an internal error of pipesim: {describe_error(error)}",
        place=f"{frames[-1].filename}:{frames[-1].lineno}" if frames else "",
        cause="pipesim has a mistake there: an input may be wrong, but the answer to that is another message",
        correction=f"report it in {ISSUES}, with the command and the traceback, which {TRACEBACK}=1 prints",
    )


class Interruption(BaseException):
    """What ends the work from outside: code that turns a failure into an answer lets this pass."""


def describe_error(error: BaseException) -> str:
    """``ZeroDivisionError: division by zero`` in one line, whatever the exception's own methods do.

    The place of a syntax error is left out.
    """
    name: str = type.__dict__["__name__"].__get__(type(error))  # past a metaclass, which may be the author's
    try:
        text = str(error.msg or "") if isinstance(error, SyntaxError) else str(error)
        text = " ".join(text.split())
    except (KeyboardInterrupt, Interruption):
        raise
    except BaseException:  # noqa: BLE001  # __str__ is its author's, and may raise what it likes
        text = "(its text cannot be read)"
    return f"{name}: {text}" if text else name
