"""A ring to simulate, whole or broken, and a profile of small round numbers."""

from dataclasses import dataclass
from typing import Any

from pipesim.lang.protocol import Protocol
from pipesim.lang.warp import Warp
from pipesim.model.program import Program
from pipesim.pipelines import ProducerConsumerPipeline
from pipesim.timed.profile import Profile
from pipesim.trace.schema import Trace
from pipesim.trace.sites import site_table

#: A chip of 4 SMs at 1 GHz: a cycle is 1,000 ps. No polling, no cold start, records cost nothing.
TOY = {
    "wait.issue": 5, "wait.wake_up": 3, "wait.retry": 0, "wait.poll": 1,
    "arrive.issue": 7, "arrive.latency": 2, "expect.issue": 4,
    "copy.issue": 6, "copy.latency": 50, "copy.latency_loaded": 50, "copy.cold": 0,
    "copy.bytes_per_kcycle": 16_000, "copy.device_bytes_per_kcycle": 64_000,
    "copy.store_bytes_per_kcycle": 8_000, "copy.device_fresh_bytes_per_kcycle": 64_000,
    "copy.device_shared_bytes_per_kcycle": 64_000, "copy.memory_bytes_per_kcycle": 64_000, "copy.cached_bytes": 10**12,
    "read.issue": 1, "read.bytes_per_kcycle": 64_000, "work.issue": 1, "loop.issue": 2,
    "transfer.latency": 90, "matrix.latency": 90, "sync.latency": 10, "other.issue": 1, "record.issue": 0,
}  # fmt: skip


@dataclass(frozen=True)
class Ring:
    """A ring of bulk copies: one producer lane, ``warps`` consumer warps of which ``lanes`` lanes arrive."""

    stages: int = 2
    tiles: int = 4
    nbytes: int = 64
    warps: int = 1
    lanes: int = 1
    work: int = 0
    tries: bool = False  #: both sides try first and wait if needed
    empty_count: int | None = None  #: if it is not what the consumers arrive
    expect: int | None = None  #: if it is not what the copies bring
    arrives: int = 10**6  #: the first consumer warp arrives for so many tiles


def ring(case: Ring) -> Protocol:
    p = Protocol("ring")
    tile = p.smem("tile", case.stages, case.nbytes)
    storage = p.mbarriers("pipe", 2 * case.stages)
    count = case.warps * case.lanes if case.empty_count is None else case.empty_count
    p.init(lambda: ProducerConsumerPipeline(storage, case.stages).init_mbars(1, count))

    @p.role("load")
    def load(w: Warp) -> None:
        pipe = ProducerConsumerPipeline(storage, case.stages)
        with w.elect_one():
            for i in w.loop(case.tiles, "tiles"):
                if case.tries:
                    pipe.wait_consumer_if_needed(pipe.try_wait_consumer())
                else:
                    pipe.wait_consumer()
                mbar = pipe.producer_mbar(pipe.producer_stage())
                mbar.expect_bytes(case.nbytes if case.expect is None else case.expect)
                w.tma_load(tile[pipe.producer_stage()], mbar, i)
                pipe.producer_step()

    @p.role("use", warps=case.warps)
    def use(w: Warp) -> None:
        pipe = ProducerConsumerPipeline(storage, case.stages)
        for i in w.loop(case.tiles, "tiles"):
            if case.tries:
                pipe.wait_producer_if_needed(pipe.try_wait_producer())
            else:
                pipe.wait_producer()
            w.read(tile[pipe.consumer_stage()], i)
            if case.work:
                w.work(case.work)
            if w.index or i < case.arrives:
                with w.lanes(case.lanes):
                    pipe.consumer_mbar(pipe.consumer_stage()).arrive()
            pipe.consumer_step()

    return p


#: Values of the toy profile that have nothing to do with rings.
OTHERS = {
    "shared.bytes_per_kcycle": 128_000, "mma.per_kcycle": 2_048_000, "mma.queue": 8, "mma.issue_permille": 0,
    "mma.slots_permille": 460, "try.limit": 0, "cta.start": 0, "copy.loaded_bytes": 1,
    "clock.tensor_permille": 1_000, "clock.tensor_loaded_permille": 1_000,
    "ptx.wait": 20, "ptx.arrive": 20, "ptx.expect": 16, "ptx.copy": 40, "ptx.sync": 15, "ptx.record": 38,
    "class.rounds": 33_000, "class.fma": 2_000, "class.alu": 2_000, "class.exp2": 8_000, "class.shuffles": 24_000,
    "class.shared_bytes": 8, "class.global_accesses": 500_000, "class.global_bytes": 8, "class.copies": 160_000,
    "class.products": 9_000, "class.warp_products": 800, "class.proxy_fences": 90_000,
    "class.cluster_fences": 500_000, "class.fresh_copies": 0, "class.global_lines": 0, "class.streamed_copies": 0,
    "class.fences_beside": 0,
}  # fmt: skip


def flat_ring(**fields: Any) -> Program:
    """The program of a ring with these fields."""
    return ring(Ring(**fields)).flatten({})


def toy(**values: int) -> Profile:
    named = {name.replace("_", ".", 1): value for name, value in values.items()}
    assert set(named) <= set(TOY), named
    return Profile("toy", "a toy", 4, 1_000_000, "invented", {**OTHERS, **TOY, **named})


def stamps(program: Program, trace: Trace) -> dict[tuple[int, int], tuple[int, ...]]:
    """The times of the events of each (agent, operation), which must all be there, in program order, none backwards."""
    table = site_table(program)
    found = {}
    for agent, records in enumerate(table.records):
        rows = iter([int(r) for r in (trace.events.agent == agent).nonzero()[0]])
        passes: dict[int, int] = {}
        last = 0
        for pc, expected in enumerate(records):
            times = []
            for record in expected:
                row = next(rows)
                events = trace.events
                assert (events.site[row], events.stage[row], events.parity[row]) == (
                    record.site, record.stage, record.parity,
                )  # fmt: skip
                assert events.iteration[row] == passes.get(record.site, 0)
                assert events.value[row] == record.value
                assert events.cycle[row] >= last
                passes[record.site] = passes.get(record.site, 0) + 1
                last = int(events.cycle[row])
                times.append(last)
            found[agent, pc] = tuple(times)
        assert next(rows, None) is None
    return found


def lines(trace: Trace) -> list[str]:
    """Each event as ``cycle agent site[stage] parity #iteration =value``, agent by agent."""
    e = trace.events
    return [
        f"{e.cycle[r]} {trace.meta.agent_name(int(e.agent[r]))} "
        f"{trace.meta.sites[int(e.site[r])].kind.name.lower()} "
        f"{trace.meta.sites[int(e.site[r])].barrier}[{e.stage[r]}] {e.parity[r]} #{e.iteration[r]} ={e.value[r]}"
        for r in range(len(e))
    ]
