"""The prologue: what initialises the mbarriers before the roles begin, and the fence and the barrier that follow."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pipesim.errors import ProtocolError
from pipesim.lang.author_function import run
from pipesim.lang.recorder import Recorder
from pipesim.lang.shared_mem_barrier import BarrierStorage
from pipesim.model.ops import Fence, Op, Scope, semantics
from pipesim.model.positions import BARRIER

InitBody = Callable[[], None]


@dataclass(frozen=True)
class Prologue:
    """How the mbarriers of a protocol are initialised: by the author's init, by their counts, or by a role."""

    protocol: str  #: its name
    cluster: int  #: CTAs
    warps: int  #: of one CTA
    storages: Sequence[BarrierStorage]
    counts: Mapping[str, int]  #: of the storages that were given one, by name
    declared: Mapping[str, str]  #: of each storage the author's line
    init: InitBody | None
    line: str  #: where the author reads what is added: at the init, or where the first mbarriers are named

    @property
    def is_added(self) -> bool:
        """True but where the roles alone initialise: then fence and barrier are theirs as well, or forgotten."""
        return self.init is not None or bool(self.counts) or not self.storages

    @property
    def notes(self) -> tuple[str, ...]:
        """What the flattener has added to the author's description."""
        if self.init is not None:
            return ("the flattener adds fence.mbarrier_init and the CTA barrier after the init",)
        if self.is_added:
            return (
                "no init was given: the flattener adds the usual prologue (init, fence.mbarrier_init, CTA barrier)",
            )
        return ("no init was given, and a role initialises the mbarriers: the flattener adds no prologue",)

    def record(self, rec: Recorder, warp: int) -> None:
        """What this warp of a CTA executes before its role, if the flattener adds it."""
        if self.is_added:
            if warp == 0:
                self._record_init(rec)
            self._record_sync(rec)

    def require_initialised(self, recorders: Sequence[Recorder]) -> None:
        """Raise ProtocolError if no agent initialises anything of a storage that has no count, and there is no init.

        One that is initialised in part is a fault of the modelled program: only its schedules can tell.
        """
        uncounted = [s for s in self.storages if s.name not in self.counts]
        if self.init is not None or not uncounted:
            return
        per_cta = uncounted[0].per_cta[0]
        inits = {op[BARRIER] % per_cta for rec in recorders for op in rec.code if op[0] == Op.INIT}
        missing = [s.name for s in uncounted if inits.isdisjoint(range(s.first, s.first + s.size))]
        if missing:
            raise ProtocolError(
                f"no role initialises {', '.join(missing)}",
                place=self.declared[missing[0]],
                correction="mark a function @protocol.init, name the count: protocol.mbarriers(name, size, 1), or "
                "initialise in a role",
            )

    def _record_init(self, rec: Recorder) -> None:
        """One lane initialises; without an init, the barriers that named a count are initialised as usual."""
        with rec.narrowed(1):
            if self.init is not None:
                with rec.naming(""):  # a pipeline that only initialises its barriers is no role's
                    run(self.init, f"the init of {self.protocol}")
            else:
                for storage in self.storages:
                    for index in range(storage.size if storage.name in self.counts else 0):
                        storage[index].init(self.counts[storage.name], line=self.declared[storage.name])
            rec.emit(Op.FENCE, Fence.MBARRIER_INIT, semantics(scope=Scope.CLUSTER), line=self.line)

    def _record_sync(self, rec: Recorder) -> None:
        if self.cluster > 1:
            rec.emit(Op.CLUSTER_ARRIVE, semantics(scope=Scope.CLUSTER), line=self.line)
            rec.emit(Op.CLUSTER_WAIT, semantics(scope=Scope.CLUSTER), line=self.line)
        else:
            rec.emit(Op.BAR_SYNC, rec.tables.named_barrier(rec.cta, 0), 32 * self.warps, rec.counted, line=self.line)
