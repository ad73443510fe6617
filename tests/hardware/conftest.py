"""The test side of the recorder: an encoder of what a device would leave in memory, and a GPU made of arrays."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pytest

from hwkernels.capture import CaptureRequest, TwinSubject
from hwkernels.device.launch import DeviceInfo, require_gpu
from hwkernels.source_recorder.layout import HEADER, LAUNCH, REPORT
from hwkernels.source_recorder.record_format import RECORD_WORDS
from hwkernels.source_recorder.table import Table, read_table
from hwkernels.twins.hopper.producer_consumer import PRODUCER_CONSUMER, share_sums
from pipesim.errors import HardwareError, KernelTrapError, MissingExtraError
from tests.support.format2_streams import recode

TABLE = PRODUCER_CONSUMER.table_file
PARAMS = {"stages": 2, "tiles": 4, "tile_bytes": 64, "consumer_warps": 1, "work": 0, "arrive_lanes": 1}
VALUES = {"STAGES": 2, "TILE_BYTES": 64, "CONSUMER_WARPS": 1, "ARRIVE_LANES": 1}


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Iterator[None]:
    """An empty cache for compiled kernels, one for all processes of this session: each is compiled once."""
    base = tmp_path_factory.getbasetemp()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str((base if worker_id == "master" else base.parent) / "kernels"))
        yield


@pytest.fixture(autouse=True)
def info(request: pytest.FixtureRequest) -> DeviceInfo | None:
    """What is known of the GPU that a test is marked to need; without one the test is skipped."""
    if request.node.get_closest_marker("gpu") is None:
        return None
    try:
        return require_gpu()
    except (HardwareError, MissingExtraError) as error:
        pytest.skip(str(error).replace("\n", "; "))


@pytest.fixture
def table() -> Table:
    return read_table(TABLE, VALUES)


@dataclass
class Encoder:
    """One launch's recording. Clocks run at 2 cycles a nanosecond: cycle = 2 * (globaltimer - 1_000_000) + offset."""

    table: Table
    clock: str = "clock"
    capacity: int = 64
    ctas: int = 1
    offset: int = 5_000_000_000
    headers: np.ndarray = field(init=False)
    records: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        agents = len(self.table.agents)
        self.headers = np.zeros(self.ctas, dtype=HEADER)
        self.records = np.zeros((self.ctas, agents, self.capacity, RECORD_WORDS[self.clock]), dtype=np.uint32)
        for cta in range(self.ctas):
            self.headers[cta]["smid"] = 7 + cta

    def cycle(self, ns: int) -> int:
        return 2 * (ns - 1_000_000) + self.offset

    def anchor(self, which: int, ns: int, cta: int = 0, *, before: int = 20, after: int = 12, step: int = 32) -> None:
        edge = self.cycle(ns)
        self.headers[cta]["anchors"][which] = (ns - step, ns, edge - before, edge + after)

    def record(self, cta: int, agent: int, site: int, cycle: int, *, iteration: int, stage: int = 0,
               parity: int = 0, value: int = 0, ns: int = 0) -> None:  # fmt: skip
        counts = self.headers[cta]["counts"][agent]
        if counts[0] == self.capacity:
            counts[1] += 1
            return
        tag = site | value << 6 | parity << 12 | stage << 13 | (iteration & 0x3FFF) << 18
        words = {"clock": (cycle, tag), "globaltimer": (ns, tag), "both": (cycle, tag, ns, 0)}[self.clock]
        self.records[cta, agent, counts[0]] = [word & 0xFFFFFFFF for word in words]
        counts[0] += 1


@pytest.fixture
def encoder() -> type[Encoder]:
    return Encoder


class FakeGpu:
    """The device calls that a capture makes, on arrays; a launch does at once what the kernel is meant to do."""

    latest: "FakeGpu"
    mistake = ""  # "wrong": a checksum is off; "late": CTA 1's consumer gives up at iteration 2

    def __init__(self, info: DeviceInfo) -> None:
        self.memory: dict[int, np.ndarray] = {}
        self.launches: list[bool] = []
        self.closed = False
        FakeGpu.latest = self

    def load(self, compiled, smem_bytes):
        assert 0 <= smem_bytes <= 232448
        return compiled

    def room(self, said, kept) -> int:
        """The CTAs whose records the memory holds."""
        return len(self.memory[int(said["records"])]) // (kept.records[0].nbytes or 1)

    def allocate(self, nbytes: int) -> int:
        address = (len(self.memory) + 1) << 32
        self.memory[address] = np.full(max(nbytes, 1), 0x77, dtype=np.uint8)
        return address

    def host_mapped(self, nbytes: int) -> tuple[int, np.ndarray]:
        address = self.allocate(nbytes)
        return address, self.memory[address][:nbytes]

    def upload(self, address, array):
        self.memory[address][: array.nbytes] = array.reshape(-1).view(np.uint8)

    def download(self, address, array):
        if array.nbytes:
            array.reshape(-1).view(np.uint8)[:] = self.memory[address][: array.nbytes]

    def fill(self, address, byte, nbytes):
        self.memory[address][:nbytes] = byte

    def close(self):
        self.closed = True

    def parameter_sizes(self, kernel):
        raise AssertionError("a twin's arguments are its own")

    def launch(self, kernel, shape, arguments):
        """The kernel that tells the clock's rate."""
        said = self.memory[int(arguments[1])].view(LAUNCH)[0]
        kept = Encoder(read_table(TABLE, VALUES))
        kept.anchor(0, 1_000_000)
        kept.anchor(1, 1_200_000)
        self.upload(int(said["ctas"]), kept.headers)

    def launch_within(self, kernel, shape, arguments, limit_s):
        assert limit_s > 0.25
        traced = "-DPIPESIM_TRACE=1" in kernel.options
        self.launches.append(traced)
        source, ntiles, step, tiles, _, deadline, *marks = (int(a) for a in arguments[:8])
        checksums, reports, _, _, *launch_at = (int(a) for a in arguments[8:])
        assert len(launch_at) == traced
        assert step == tiles % ntiles
        assert deadline == 250_000_000
        (grid,), (threads,) = shape.grid, shape.block
        warps = threads // 32 - 1
        data = self.memory[source][: ntiles * 64].view(np.uint32).reshape(ntiles, 16)
        index = (np.arange(grid)[:, None] * tiles + np.arange(tiles)) % ntiles
        sums = share_sums(data, warps)[index]
        if self.mistake == "wrong":
            sums[0, 1, 0] += 1
        self.upload(checksums, np.ascontiguousarray(sums))
        report = np.zeros(grid, dtype=REPORT)
        report["status"], report["loop_begin"], report["iterations"] = 1, 1000, tiles
        report["loop_end"] = 1000 + tiles * (110 if traced else 100)
        report["marks"] = np.array(marks) * (110 if traced else 100) + 50 if marks[0] != 0xFFFFFFFF else 0
        if self.mistake == "late":
            report[1] = (2, 4, 1, 2, 1000, 9000, (0, 0), (4, 2) + (0,) * 14, (0,) * 64)
            report[0]["status"] = 3
        self.upload(reports, report)
        if traced:
            table = read_table(TABLE, VALUES | {"CONSUMER_WARPS": warps})
            said = self.memory[launch_at[0]].view(LAUNCH)[0]
            kept = Encoder(table, capacity=int(said["capacity"]) - 1, ctas=grid)
            window = range(int(said["first"]), int(said["first"]) + int(said["span"]))
            for cta in range(grid):
                _play(kept, cta, [i for i in range(tiles) if i in window])
            trapped = self.mistake == "trap" and "-DPIPESIM_FAULT=2" in kernel.options
            if trapped:
                kept.headers["anchors"][:, 1], kept.headers["counts"] = 0, 0
                kept.records[:, :, 6:] = 0xFFFFFFFF
            recode(kept, kernel.options)
            self.upload(int(said["ctas"]), kept.headers)
            kept.records = np.pad(kept.records, ((0, 0), (0, 0), (1, 0), (0, 0)))  # the first is not used
            self.upload(int(said["records"]), np.ascontiguousarray(kept.records[: self.room(said, kept)]))
            if trapped:
                self.upload(reports, np.zeros(grid, dtype=REPORT))
                raise KernelTrapError("the kernel trapped")
        return 12_345


def _play(kept: Encoder, cta: int, iterations: list[int]) -> None:
    kept.anchor(0, 1_000_000 + 32 * cta, cta)
    for agent, info in enumerate(kept.table.agents):
        sites = [n for n, site in enumerate(kept.table.sites) if site.role == info.role]
        for i in iterations:
            for place, site in enumerate(sites):
                now = kept.cycle(1_000_100 + 32 * cta + 20 * i + place)
                parity, value = (i // 2 + (agent == 0)) % 2, int(site == sites[-1] and agent > 0)
                kept.record(cta, agent, site, now, iteration=i, stage=i % 2, parity=parity, value=value)
    kept.anchor(1, 1_020_000 + 32 * cta, cta)


@pytest.fixture
def fake_gpu(monkeypatch: pytest.MonkeyPatch) -> type[FakeGpu]:
    info = DeviceInfo(0, "Array GPU", 132, "9.0", "999.1", 232448, 233472)
    monkeypatch.setattr("hwkernels.capture.pipeline.Gpu", FakeGpu)
    monkeypatch.setattr("hwkernels.capture.pipeline.require_gpu", lambda: info)
    monkeypatch.setattr("hwkernels.device.launch._WARM_UP_S", 0)
    monkeypatch.setattr(FakeGpu, "mistake", "")
    return FakeGpu


@pytest.fixture
def request_of():
    def make(grid: int = 2, **changes: int) -> CaptureRequest:
        return CaptureRequest(TwinSubject("producer_consumer", grid), PARAMS | changes, repetitions=2)

    return make
