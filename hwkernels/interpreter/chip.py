"""Runs of flat programs on this machine's GPU, many in one launch, and what each left."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hwkernels.device.compile import CompiledKernel, compile_cubin
from hwkernels.device.launch import DeviceInfo, Gpu, Shape
from hwkernels.device.sources import source_file
from hwkernels.interpreter.job import Packed, Packing, Run, defines

FINISHED, BLOCKED = 1, 2  #: ``End`` of the kernel
_LIMIT_S = 60.0  #: of a launch, which ends by itself long before


@dataclass(frozen=True)
class Outcome:
    """How a run ended: for each agent the operation where it is, and whether it is at its end.

    ``wrong_reads``: reads that found another item than they name; ``first``: agent and operation of one of them.
    ``wrong_stores``: bulk stores that left another item, of a run that has ended.
    """

    pcs: tuple[int, ...]
    finished: tuple[bool, ...]
    wrong_reads: int
    first: tuple[int, int] | None
    wrong_stores: int

    @property
    def hangs(self) -> bool:
        """Whether an agent has not ended."""
        return not all(self.finished)


def compile_interpreter(*, records: bool = False) -> CompiledKernel:
    """The kernel, with its recorder or without it."""
    trace = {"PIPESIM_TRACE": int(records), "PIPESIM_ENCODING": 1, "PIPESIM_CHECKED": 0, "PIPESIM_COUNTED": 1}
    return compile_cubin(source_file("interpreter.cu"), defines() | (trace if records else {}))


class Chip:
    """A GPU with the kernel loaded. To be closed."""

    def __init__(self, info: DeviceInfo) -> None:
        self._info, self._gpu = info, Gpu(info)
        self._kernel = self._gpu.load(compile_interpreter(), info.smem_per_cta - 1024)
        self._areas: dict[str, tuple[int, int]] = {}

    def run(self, runs: Sequence[Run], deadline_us: int = 2000) -> list[Outcome]:
        """What each run left. HardwareError if the launch fails.

        A cluster has two CTAs at least: where a launch has no clusters, threads that arrive at the cluster's barrier
        at different places of the code never passed it (H200).
        """
        ctas = max(2, *(run.program.ctas for run in runs))
        packing = Packing(ctas, max(agent.warp for run in runs for agent in run.program.agents) + 1)
        for run in runs:
            packing.add(run)
        packed = packing.done()
        status = np.zeros((len(runs), ctas, packed.warps, 4), dtype=np.uint32)
        sizes = {"global": packed.global_bytes, "stores": packed.store_bytes}
        arrays = {"jobs": packed.jobs, "words": packed.words, "items": packed.items, "status": status}
        at = {name: self._area(name, array.nbytes) for name, array in arrays.items()}
        at |= {name: self._area(name, nbytes) for name, nbytes in sizes.items()}
        for name, array in arrays.items():
            self._gpu.upload(at[name], array)
        for name, nbytes in sizes.items():
            self._gpu.fill(at[name], 0, nbytes)
        shape = Shape((len(runs) * ctas,), (32 * (packed.warps + 1),), packed.smem_bytes, ctas)
        buffers = [at[name] for name in ("jobs", "words", "items", "global", "stores", "status")]
        self._gpu.launch_within(
            self._kernel, shape, [*buffers, np.uint32(ctas), np.uint32(1000 * deadline_us), 0, 0], _LIMIT_S
        )
        self._gpu.download(at["status"], status)
        stored = np.zeros(packed.store_bytes // 4, dtype=np.uint32)
        self._gpu.download(at["stores"], stored)
        return [_outcome(run, packed, n, status[n], stored) for n, run in enumerate(runs)]

    def _area(self, name: str, nbytes: int) -> int:
        """Memory for a buffer, that of an earlier launch if it is large enough."""
        address, size = self._areas.get(name, (0, -1))
        if size < nbytes:
            address = self._gpu.allocate(2 * nbytes)
            self._areas[name] = address, 2 * nbytes
        return address

    def close(self) -> None:
        """Give the GPU back."""
        self._gpu.close()


def _outcome(run: Run, packed: Packed, number: int, status: npt.NDArray[Any], stored: npt.NDArray[Any]) -> Outcome:
    rows = [status[agent.cta, agent.warp] for agent in run.program.agents]
    finished = tuple(int(row[1]) == FINISHED for row in rows)
    wrong = [(agent, int(row[3])) for agent, row in enumerate(rows) if row[2]]
    wrong_stores = 0
    if all(finished):
        for store in packed.stores[number]:
            left = stored[store.place // 4 : (store.place + store.nbytes) // 4]
            wrong_stores += int(store.word is not None and bool((left != store.word).any()))
    return Outcome(
        tuple(int(row[0]) for row in rows), finished, sum(int(row[2]) for row in rows), wrong[0] if wrong else None,
        wrong_stores,
    )  # fmt: skip
