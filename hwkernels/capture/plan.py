"""How a request lies in memory: the shape of its launch, and where its records go first. Needs no GPU."""

from dataclasses import dataclass, replace

from hwkernels.capture.request import CaptureRequest, Needs
from hwkernels.device.launch import Shape
from hwkernels.source_recorder.record_format import record_words
from hwkernels.source_recorder.session import Space
from hwkernels.source_recorder.table import Table
from pipesim.errors import ConfigurationError
from pipesim.protocols.limits import MAX_SMEM

_OF_ALL_RECORDS = {"device": 1 << 30, "host": 1 << 28}  # bytes
_OF_SYSTEM = 1024  #: bytes of shared memory that each CTA takes besides


@dataclass(frozen=True)
class Plan:
    """How a request lies in memory: computed once for all its launches, traced and untraced."""

    needs: Needs
    shape: Shape  #: with room for records, if they go to shared memory
    capacity: int  #: records that an agent's buffer has room for
    memory: str  #: where records go first
    record_ctas: int

    @property
    def table(self) -> Table:
        """The roles, barriers and sites of the kernel."""
        return self.needs.table

    def space(self, clock: str, ctas: int) -> Space:
        """The recorder's memory; from shared memory, the kernel copies the first CTAs' records only."""
        stored = self.record_ctas if self.memory == "shared" else ctas
        host = self.memory == "host"
        words = record_words(self.needs.encoding, clock)
        return Space(
            self.table, words, ctas, stored, self.record_ctas, self.capacity, self.needs.room, host, self.needs.window,
            self.needs.words, self.needs.marks,
        )  # fmt: skip


def plan(request: CaptureRequest, smem_per_cta: int = MAX_SMEM, smem_per_sm: int = MAX_SMEM + _OF_SYSTEM) -> Plan:
    """Where everything goes. Raises ConfigurationError if it does not fit.

    An untraced launch gets the same shared memory as a traced one.
    """
    needs = request.subject.needs(request)
    if needs.shape.smem_bytes > smem_per_cta:
        raise ConfigurationError(
            f"the kernel needs {needs.shape.smem_bytes:,} bytes of shared memory",
            cause=f"a CTA has {smem_per_cta:,}",
            correction="use fewer stages or smaller tiles",
        )
    ctas = request.ctas
    of_agents = len(needs.table.agents) * 4 * record_words(needs.encoding, request.clock)  # bytes of a record of each
    most = {name: nbytes // (ctas * of_agents) for name, nbytes in _OF_ALL_RECORDS.items()}
    aligned = needs.alignment or 0
    left = smem_per_cta - needs.shape.smem_bytes - aligned if needs.alignment is not None else 0
    most["shared"] = max(left, 0) // of_agents
    memory = request.memory or (
        "host" if request.fault else "shared" if needs.wanted <= most["shared"] else "device"
    )  # fmt: skip
    capacity = min(needs.wanted, most[memory])
    if capacity < needs.least:
        raise _no_room(needs, memory, capacity, ctas)
    smem = needs.shape.smem_bytes + (aligned + capacity * of_agents if memory == "shared" else 0)
    if needs.alone:  # whatever the grid
        smem = max(smem, min(smem_per_sm // 2 + _OF_SYSTEM, smem_per_cta))
    cluster = needs.shape.cluster
    kept = min(-(-request.record_ctas // cluster) * cluster, ctas)
    return Plan(needs, replace(needs.shape, smem_bytes=smem), capacity, memory, kept)


def _no_room(needs: Needs, memory: str, capacity: int, ctas: int) -> ConfigurationError:
    fewer = "use fewer stages, tiles or steps" if memory == "shared" else "launch fewer CTAs, or use fewer tiles"
    of_launch = "" if memory == "shared" else f" of {ctas:,} CTAs"
    return ConfigurationError(
        f"there is no room for records in {memory} memory",
        cause=f"{capacity:,} fit for each of {len(needs.table.agents)} warps{of_launch}, "
        f"but {needs.least:,} are needed",
        correction=f"record to device memory (--memory device), or {fewer}" if memory == "shared" else fewer,
    )
