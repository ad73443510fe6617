"""Every exception that pipesim raises deliberately, each with the exit code of a command that ends with it.

A fault of the *modelled* program is never an exception: it is a value (``pipesim.model.finding``). What is raised here
is misuse of pipesim itself: a wrong parameter, a file that is not a trace, a role that drops a handle.
"""

from __future__ import annotations


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


class ParameterError(UsageError):
    """A parameter has an unknown name, a value of the wrong type, or one out of range."""


class ConfigurationError(UsageError):
    """The parameters are well formed but do not fit the hardware."""


class ProtocolError(UsageError):
    """A protocol breaks a rule of the description language: its place is the author's line."""


class HandleError(ProtocolError):
    """A stage handle was dropped, released twice, or used after its release."""


class ProgramFormatError(UsageError):
    """A flat program's JSON form is damaged, foreign, or of a newer version."""


class ProfileError(UsageError):
    """A latency profile is unknown, damaged, or of another version."""


class OutputExistsError(UsageError):
    """An output file exists and ``--force`` was not given."""


class MissingExtraError(UsageError):
    """A package of an optional extra is not installed."""


class CompileError(PipesimError):
    """NVRTC refused a kernel; the message carries the full log (exit code 2)."""


class EvidenceError(PipesimError):
    """There is nothing to compare with, or what there is cannot be trusted (exit code 3)."""

    exit_code = 3


class TraceFormatError(EvidenceError):
    """A trace file is truncated, corrupted, foreign, empty, or of a newer schema."""


class ForeignFileError(TraceFormatError):
    """A sound Parquet file that is not a trace: another program's, or a trace whose metadata another program left
    out.
    """


class ClockError(EvidenceError):
    """The clocks of a recording contradict the order that messages between its SMs prove."""


class NoTraceError(EvidenceError):
    """No recorded trace matches the protocol and its parameters."""


class HardwareError(EvidenceError):
    """There is no usable GPU, or the launch failed."""


class KernelTrapError(HardwareError):
    """The hardware ended a launch; the CUDA context of the process is lost."""


class KernelHangError(HardwareError):
    """A launch did not end in the time it was given; it may still be running, so the process must go."""
