"""What the observer records of the driver's calls, with a driver that is not there."""

import ctypes
import json
import sys
from ctypes import c_uint32, c_uint64, c_void_p
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import pytest

from pipesim.answers.launch_sequence.check import check_sequence
from pipesim.answers.launch_sequence.file import StreamAct, read_sequence
from pipesim.launches.files.gather import gather
from pipesim.launches.images.fat_binary import EntryKind
from pipesim.launches.observe import Limits, calls
from pipesim.launches.observe.compilers import CompiledPtx
from pipesim.launches.observe.driver import CudaDriver, Shape
from pipesim.launches.observe.loaded_images import LoadedImages
from pipesim.launches.observe.observer import LaunchObserver
from pipesim.launches.observe.spool import Spool
from tests.support.fat_binaries import container, entry


@dataclass
class FakeDriver(CudaDriver):
    """``memory`` gives the bytes at each address of device memory; ``layouts`` the sizes of a function's parameters."""

    layouts: dict[int, tuple[int, ...]] = field(default_factory=dict)
    owners: dict[int, tuple[int, ...]] = field(default_factory=dict)
    memory: dict[int, bytes] = field(default_factory=dict)
    clusters: dict[int, Shape] = field(default_factory=dict)
    graphs: dict[int, list[tuple[Any, Shape | None]]] = field(default_factory=dict)
    capturing: bool = False
    busy: bool = False

    def parameter_sizes(self, function: int) -> tuple[tuple[int, int], ...] | None:
        """Offsets as the driver reports them, which are not PTX's: here each parameter begins at a multiple of 8."""
        sizes = self.layouts.get(function)
        if sizes is None:
            return None
        found, at = [], 0
        for size in sizes:
            found.append((at, size))
            at += (size + 7) & ~7
        return tuple(found)

    def function_of(self, kernel: int) -> int:
        """None: the handles are of functions."""
        return 0

    def owner(self, function: int) -> tuple[int, ...]:
        """The modules that a test has given."""
        return self.owners.get(function, ())

    def name(self, function: int) -> str:
        """A name that says which function it is."""
        return f"function_{function}"

    def registers(self, function: int) -> int:
        """The same for all."""
        return 64

    def required_cluster(self, function: int) -> Shape | None:
        """The cluster that a test has given."""
        return self.clusters.get(function)

    def memory_from(self, address: int) -> int | None:
        """Bytes to the end of the memory in which an address is."""
        for base, data in self.memory.items():
            if base <= address < base + len(data):
                return base + len(data) - address
        return None

    def allocation(self, address: int) -> tuple[int, int] | None:
        """The memory in which an address is."""
        found = [(base, len(data)) for base, data in self.memory.items() if base <= address < base + len(data)]
        return found[0] if found else None

    def is_capturing(self, stream: int) -> bool:
        """Whether the test says so."""
        return self.capturing

    def copy(self, address: int, nbytes: int, *, after: int) -> bytes | None:
        """The bytes that are there, unless the stream is busy."""
        if self.busy:
            return None
        base = max(each for each in self.memory if each <= address)
        return self.memory[base][address - base : address - base + nbytes]

    def kernel_nodes(self, graph: int) -> list[tuple[Any, Shape | None]] | None:
        """The nodes that a test has given."""
        return self.graphs.get(graph)

    def device(self) -> tuple[str, str]:
        """An H200."""
        return "NVIDIA H200", "sm_90"


class Calls:
    """Calls of the driver as CUPTI reports them. What they point to lives as long as this object."""

    def __init__(self, observer: LaunchObserver) -> None:
        self._observer = observer
        self._kept: list[Any] = []

    def keep(self, data: Any) -> int:
        """The address of bytes or of a structure."""
        held = ctypes.create_string_buffer(data, len(data)) if isinstance(data, bytes) else data
        self._kept.append(held)
        return ctypes.addressof(held)

    def call(self, number: int, arguments: Any, symbol: str | None = None, status: int = 0) -> None:
        """A call: before it and after it."""
        result = ctypes.c_int(status)
        name = symbol.encode() if symbol else None
        for site in (0, 1):
            data = calls.CallbackData(site, b"", self.keep(arguments), self.keep(result), name, None)
            self._observer.on_call(number, ctypes.addressof(data))

    def array(self, parameters: tuple[bytes, ...]) -> int:
        """The array of pointers that a launch is given."""
        return self.keep((c_void_p * max(1, len(parameters)))(*(self.keep(each) for each in parameters)))

    def launch(self, function: int, *parameters: bytes, grid: int = 1, symbol: str | None = None) -> None:
        """``cuLaunchKernel`` of CTAs of 128 threads."""
        given = calls.LaunchKernel(function, grid, 1, 1, 128, 1, 1, 0, None, self.array(parameters), None)
        self.call(307, given, symbol)

    def launch_ex(self, function: int, *parameters: bytes, programmatic: bool = False) -> None:
        """``cuLaunchKernelEx`` with a cluster among its attributes, after the programmatic one or another."""
        attributes = (calls.Attribute * 2)()
        attributes[0].id, attributes[0].value[0] = calls.PROGRAMMATIC if programmatic else 1, 7
        attributes[1].id, attributes[1].value[0] = calls.CLUSTER, 1
        config = calls.LaunchConfig(8, 1, 1, 128, 1, 1, 0, None, self.keep(attributes), 2)
        self.call(652, calls.LaunchKernelEx(self.keep(config), function, self.array(parameters), None))

    def load(self, handle: int, image: bytes, status: int = 0) -> None:
        """``cuModuleLoadData`` of an image, which gives a module."""
        module = c_void_p(handle)
        held = image + bytes(8192)  # the text is read by pages
        self.call(19, calls.FirstTwo(self.keep(module), self.keep(held)), status=status)


PTX = b".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry function_1() { ret; }\n"
LOOPS = b"""
.version 8.0
.target sm_90a
.address_size 64
.visible .entry function_1(.param .u64 trips, .param .u64 data)
{
    .reg .b64 %rd<3>; .reg .b32 %r<3>; .reg .pred %p<2>;
    ld.param.u64 %rd1, [trips];
    ld.global.u32 %r1, [%rd1];
again:
    bar.sync 0;
    sub.s32 %r1, %r1, 1;
    setp.gt.s32 %p1, %r1, 0;
    @%p1 bra again;
    ret;
}
"""
DATA = 0x7F00_0000_0000


class World:
    """An observer of a driver of the test, and what it wrote."""

    def __init__(self, folder, limits=None, driver=None, ptx=PTX):
        self.folder, self.driver = folder, driver or FakeDriver(owners={1: (101,)})
        self.compiled = CompiledPtx()
        limits = limits or Limits()
        self.spool = Spool(folder, limits.nbytes)
        images = LoadedImages(self.compiled, lambda: "sm_90")
        self.observer = LaunchObserver(self.driver, self.spool, limits, images)
        self.calls = Calls(self.observer)
        if ptx:
            self.calls.load(101, ptx)

    def records(self, kind="launch"):
        lines = [json.loads(line) for file in self.folder.glob("*.jsonl") for line in file.read_text().splitlines()]
        return [each for each in lines if each["kind"] == kind]


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)


def test_the_order_of_launches_becomes_a_sequence_that_can_be_checked(tmp_path):
    head = PTX[: PTX.index(b".visible")].decode()
    kernels = {1: " st.global.u64 [%r], 0; griddepcontrol.launch_dependents;", 2: " ld.global.u64 %v, [%r];"}
    begin = "(.param .u64 .ptr .global p) { .reg .b64 %r, %v; ld.param.u64 %r, [p];"
    text = head + "".join(f".visible .entry function_{n}{begin}{kernels[n]} ret; }}\n" for n in kernels)
    (tmp_path / "spool").mkdir()
    driver = FakeDriver(owners=dict.fromkeys(kernels, (101,)))
    world = World(tmp_path / "spool", Limits(ordered=9), driver, ptx=text.encode())
    world.driver.layouts |= {1: (8,), 2: (8,)}
    world.driver.memory[DATA] = bytes(4096)
    first, apart = (address.to_bytes(8, "little") for address in (DATA, DATA + 512))
    world.calls.launch(1, first)
    world.calls.launch_ex(2, first)
    world.calls.launch_ex(2, first, programmatic=True)
    world.calls.call(119, calls.FirstTwo(5, 0))  # an event
    world.calls.launch(1, apart)
    world.calls.launch_ex(2, first, programmatic=True)
    world.calls.launch(1, first)
    world.calls.launch_ex(2, first, programmatic=True)
    world.calls.call(126, calls.FirstTwo(0, None))  # the host waits
    world.observer.finish()
    report, texts = gather(world.folder)
    for name, text in texts.items():
        (tmp_path / name).write_text(text, "utf-8")
    steps = read_sequence(tmp_path / "sequence.json")
    placed = [tuple(each.buffers.values()) for each in steps if not isinstance(each, StreamAct)]
    assert [offset for ((_, offset),) in placed] == [0, 0, 0, 512, 0, 0, 0]
    assert str(DATA) not in texts["sequence.json"], "another machine has other addresses"
    acts = [each.act if isinstance(each, StreamAct) else (each.launch.name, each.programmatic) for each in steps]
    one, two, overlapping = ("function_1.json", False), ("function_2.json", False), ("function_2.json", True)
    assert acts == [one, two, overlapping, "record", one, overlapping, one, overlapping, "synchronize"]
    found = check_sequence(tmp_path / "sequence.json")
    assert [(each.earlier, each.later) for each in found.pairs if any(shared.missing for shared in each.shared)] == [
        (6, 7)
    ]
    assert {each.reason for each in report.kernels} == {""}


def encode(world, at, swizzle=3):
    lists = [(c_uint64 * 2)(256, 128), (c_uint64 * 1)(512), (c_uint32 * 2)(64, 32), (c_uint32 * 2)(1, 1)]
    dims, strides, box, steps = (world.calls.keep(each) for each in lists)
    world.calls.call(697, calls.EncodeTiled(at, 9, 2, DATA, dims, strides, box, steps, 0, swizzle))


def test_arrays_that_decide_are_copied_and_others_are_not(tmp_path):
    driver = FakeDriver({1: (8, 8)}, {1: (101,)}, {DATA: b"\5\0\0\0", DATA + 4096: b"data"})
    world = World(tmp_path, driver=driver, ptx=LOOPS)
    world.calls.launch(1, DATA.to_bytes(8, "little"), (DATA + 4096).to_bytes(8, "little"))
    trips, data = world.records()[0]["parameters"]
    assert trips["pointers"] == [{"at": 0, "align": 256, "contents": "05000000"}]
    assert data["pointers"] == [{"at": 0, "align": 256}]


@pytest.mark.parametrize(("state", "said"), [("busy", "takes too long"), ("capturing", "of a later time")])
def test_an_array_that_cannot_be_read_without_waiting_is_not(tmp_path, state, said):
    driver = FakeDriver({1: (8, 8)}, {1: (101,)}, {DATA: b"\5\0\0\0"})
    setattr(driver, state, True)
    world = World(tmp_path, driver=driver, ptx=LOOPS)
    for n in range(2):
        world.calls.launch(1, DATA.to_bytes(8, "little"), n.to_bytes(8, "little"))
    record = world.records()[0]
    assert record["parameters"][0]["pointers"] == [{"at": 0, "align": 256}]
    assert record["via"] == ("graph" if state == "capturing" else "launch")
    (note,) = world.records("note")  # once, not for each launch
    assert said in note["text"]


@pytest.mark.parametrize("number", [643, 696])
def test_kernels_of_a_graph_are_recorded_when_it_is_instantiated_or_gets_them(world, number):
    node = calls.KernelNode(1, 3, 1, 1, 64, 1, 1, 0, world.calls.array((b"abcd",)), None, None, None)
    world.driver.layouts[1] = (4,)
    world.driver.graphs[55] = [(node, (2, 1, 1))]
    world.calls.call(number, calls.FirstTwo(None, 55))
    (record,) = world.records()
    assert (record["via"], record["grid"], record["cluster"], record["kernel"]) == (
        *("graph", [3, 1, 1], [2, 1, 1]),
        "function_1",
    )
    world.calls.call(643, calls.FirstTwo(None, 56))  # one that cannot be read
    assert "could not be read" in world.records("note")[0]["text"]


def test_a_fat_binary_without_ptx_may_be_the_cute_dsls(world, monkeypatch, tmp_path):
    monkeypatch.setenv("CUTE_DSL_DUMP_DIR", str(tmp_path / "dump"))
    monkeypatch.setitem(sys.modules, "cutlass", ModuleType("cutlass"))
    (tmp_path / "dump").mkdir()
    for name, code in (("one", b"machine code 123"), ("other", b"of another size")):  # both have a kernel of this name
        (tmp_path / "dump" / f"{name}.ptx").write_bytes(PTX.replace(b"function_1", b"function_2") + code)
        (tmp_path / "dump" / f"{name}.cubin").write_bytes(code)
    code = entry(EntryKind.ELF, 90, b"machine code 123")
    world.calls.load(102, container(code))
    world.driver.owners |= {2: (102,), 3: (102,)}
    world.calls.launch(2)
    world.calls.launch(3)
    assert [(each["origin"], each["why_not"] if not each["code"] else "") for each in world.records()] == [
        ("CuTe DSL", ""),
        ("", "its fat binary has machine code for sm_90 and no PTX"),
    ]
    assert (world.folder / world.records()[0]["code"]).read_bytes().endswith(b"machine code 123")


def test_a_module_that_failed_to_load_or_was_unloaded_is_forgotten(world):
    world.calls.load(102, PTX, status=218)
    world.driver.owners[2] = (102,)
    world.calls.launch(2)
    assert world.records()[0]["code"] == ""
    world.calls.launch(1)
    world.calls.call(22, calls.FirstTwo(101, None))
    world.calls.launch(1, grid=2)
    assert [each["code"] == "" for each in world.records()] == [True, False, True]


@pytest.mark.parametrize(
    ("limits", "kept", "left_out"),
    [
        (Limits(), 4, 0),
        (Limits(once=True), 1, 3),
        (Limits(launches=2), 2, 2),
        (Limits(patterns=("other*",)), 0, None),
        (Limits(patterns=("other*", "func*_1")), 4, 0),
        (Limits(nbytes=1500), 3, 1),
    ],
)
def test_limits(tmp_path, monkeypatch, limits, kept, left_out):
    monkeypatch.setattr(sys, "argv", ["program"])  # the record of the process has it, and counts among the bytes
    world = World(tmp_path, limits)
    world.driver.layouts[1] = ()
    for grid in (1, 2, 3, 4, 4):
        world.calls.launch(1, grid=grid)
    assert len(world.records()) == kept
    world.observer._spool._left += 1000
    world.observer.finish()
    counts = world.records("count")
    assert [each["left_out"] for each in counts] == ([left_out] if left_out is not None else [])
    assert not counts or counts[0]["launches"] == 5


def test_an_error_of_the_observer_is_a_note_and_never_the_programs(world, monkeypatch):
    monkeypatch.setattr(world.driver, "parameter_sizes", lambda function: 1 / 0)
    for _ in range(2):
        world.calls.launch(1)
    (note,) = world.records("note")
    assert "ZeroDivisionError" in note["text"]


def test_what_a_call_of_the_observers_own_causes_is_not_recorded(world, monkeypatch):
    world.driver.layouts[1] = ()
    monkeypatch.setattr(world.driver, "registers", lambda function: world.calls.launch(1, grid=9) or 5)
    world.calls.launch(1)
    assert [each["grid"] for each in world.records()] == [[1, 1, 1]]
