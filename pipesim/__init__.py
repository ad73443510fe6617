"""pipesim verifies, explains and times the mbarrier pipelines of warp-specialised GPU kernels.

The whole tool in a few lines::

    result = pipesim.check("producer_consumer", stages=2)  # every schedule
    print(result)
    pipesim.simulate("producer_consumer", "h200")  # one schedule, and its time
    pipesim.verify("producer_consumer")  # both, and what the hardware did

What :data:`__all__` lists is public, with :mod:`pipesim.pipelines`, :mod:`pipesim.testing` and :mod:`pipesim.errors`;
everything else is private (``docs/api.md``). Names are imported when they are first used, so that ``import pipesim``
costs nothing.
"""

from pipesim.version import __version__

TYPE_CHECKING = False  # which a type checker takes for true; typing itself would be most of what this file costs
if TYPE_CHECKING:
    from pipesim.answers.views.conclusion import Conclusion as Conclusion
    from pipesim.api.check import AgainstResult as AgainstResult, CheckResult as CheckResult, check as check
    from pipesim.api.compare import ComparisonResult as ComparisonResult, compare as compare
    from pipesim.api.export import ExportResult as ExportResult, export as export
    from pipesim.api.finding import (
        CheckFinding as CheckFinding,
        CounterexampleDiagram as CounterexampleDiagram,
        ReportedFinding as ReportedFinding,
    )
    from pipesim.api.result import Diagram as Diagram, show as show
    from pipesim.api.simulate import (
        SimulationResult as SimulationResult,
        VerifyResult as VerifyResult,
        simulate as simulate,
        verify as verify,
    )
    from pipesim.api.sweep import (
        AdviseResult as AdviseResult,
        SweepResult as SweepResult,
        advise as advise,
        sweep as sweep,
    )
    from pipesim.conform.agreement import Agreement as Agreement
    from pipesim.conform.result import TraceVerdict as TraceVerdict
    from pipesim.conform.times import TimeComparison as TimeComparison, TimeVerdict as TimeVerdict
    from pipesim.errors import (
        EvidenceError as EvidenceError,
        ParameterError as ParameterError,
        PipesimError as PipesimError,
        ProtocolError as ProtocolError,
        UsageError as UsageError,
    )
    from pipesim.lang.intrinsics import (
        elect as elect,
        elect_mma_arrive as elect_mma_arrive,
        mma_arrive as mma_arrive,
        mma_arrive_multicast as mma_arrive_multicast,
        predicated as predicated,
        umma_arrive_leader_cta as umma_arrive_leader_cta,
        umma_arrive_peer_cta as umma_arrive_peer_cta,
    )
    from pipesim.lang.protocol import Protocol as Protocol
    from pipesim.lang.shared_mem_barrier import (
        BarrierStorage as BarrierStorage,
        SharedMemBarrier as SharedMemBarrier,
        StateToken as StateToken,
        TryResult as TryResult,
    )
    from pipesim.lang.tiles import Slot as Slot, TileArray as TileArray
    from pipesim.lang.warp import Warp as Warp
    from pipesim.launches.capture import (
        CapturedLaunch as CapturedLaunch,
        CapturedLaunches as CapturedLaunches,
        LaunchVerdicts as LaunchVerdicts,
        capture_launches as capture_launches,
    )
    from pipesim.launches.hooks.checker import CompiledKernelWarning as CompiledKernelWarning
    from pipesim.launches.hooks.install import install as install
    from pipesim.launches.record.session import RecordedTrace as RecordedTrace, Recording as Recording, record as record
    from pipesim.model.ending import Ending as Ending
    from pipesim.model.finding import (
        Advisory as Advisory,
        Deadlock as Deadlock,
        FaultKind as FaultKind,
        FaultReport as FaultReport,
        Verdict as Verdict,
    )
    from pipesim.model.ops import Engine as Engine, Fence as Fence, Order as Order, Scope as Scope, Space as Space
    from pipesim.model.program import Program as Program
    from pipesim.targets import Target as Target, find as find
    from pipesim.timed.profile import Profile as Profile, load_profile as load_profile
    from pipesim.trace.files import read_trace as read_trace, write_trace as write_trace
    from pipesim.trace.schema import Trace as Trace

#: Where each public name is defined.
_HOMES = {
    name: module
    for module, names in {
        "pipesim.answers.views.conclusion": ("Conclusion",),
        "pipesim.api.check": ("AgainstResult", "CheckResult", "check"),
        "pipesim.api.compare": ("ComparisonResult", "compare"),
        "pipesim.api.export": ("ExportResult", "export"),
        "pipesim.api.finding": ("CheckFinding", "CounterexampleDiagram", "ReportedFinding"),
        "pipesim.api.result": ("Diagram", "show"),
        "pipesim.api.simulate": ("SimulationResult", "VerifyResult", "simulate", "verify"),
        "pipesim.api.sweep": ("AdviseResult", "SweepResult", "advise", "sweep"),
        "pipesim.conform.agreement": ("Agreement",),
        "pipesim.conform.result": ("TraceVerdict",),
        "pipesim.conform.times": ("TimeComparison", "TimeVerdict"),
        "pipesim.errors": ("EvidenceError", "ParameterError", "PipesimError", "ProtocolError", "UsageError"),
        "pipesim.lang.intrinsics": (
            "elect",
            "elect_mma_arrive",
            "mma_arrive",
            "mma_arrive_multicast",
            "predicated",
            "umma_arrive_leader_cta",
            "umma_arrive_peer_cta",
        ),
        "pipesim.lang.protocol": ("Protocol",),
        "pipesim.lang.shared_mem_barrier": ("BarrierStorage", "SharedMemBarrier", "StateToken", "TryResult"),
        "pipesim.lang.tiles": ("Slot", "TileArray"),
        "pipesim.lang.warp": ("Warp",),
        "pipesim.launches.capture": ("CapturedLaunch", "CapturedLaunches", "LaunchVerdicts", "capture_launches"),
        "pipesim.launches.hooks.checker": ("CompiledKernelWarning",),
        "pipesim.launches.hooks.install": ("install",),
        "pipesim.launches.record.session": ("RecordedTrace", "Recording", "record"),
        "pipesim.model.finding": ("Advisory", "Deadlock", "FaultKind", "FaultReport", "Verdict"),
        "pipesim.model.ops": ("Engine", "Fence", "Order", "Scope", "Space"),
        "pipesim.model.program": ("Program",),
        "pipesim.targets": ("Target", "find"),
        "pipesim.model.ending": ("Ending",),
        "pipesim.timed.profile": ("Profile", "load_profile"),
        "pipesim.trace.files": ("read_trace", "write_trace"),
        "pipesim.trace.schema": ("Trace",),
    }.items()
    for name in names
}

__all__ = list(_HOMES)
__all__ += ["__version__"]

if not TYPE_CHECKING:  # a type checker sees the imports above, and reports a name that is not among them

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(f"module 'pipesim' has no attribute {name!r}")
        from importlib import import_module

        return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
