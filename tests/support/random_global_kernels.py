"""Random kernels that only access global memory, as PTX, and by brute force what their threads may access at once."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import NamedTuple

from pipesim.ptx.extract import extract
from pipesim.ptx.launch.values import Launch, Parameter, Pointer
from pipesim.ptx.text.read import read_module
from pipesim.targets import Target, target_of
from tests.support.small_ptx import text_of

_WIDTHS = {4: "u32", 8: "v2.u32", 16: "v4.u32"}


class Index(NamedTuple):
    """``lane`` times the thread's number with some bits inverted, and so on."""

    lane: int
    flip: int
    x: int
    y: int
    trip: int
    plus: int

    def of(self, thread: int, x: int, y: int, trip: int) -> int:
        """Its value."""
        return self.lane * (thread ^ self.flip) + self.x * x + self.y * y + self.trip * trip + self.plus

    def text(self, to: str) -> str:
        """Instructions that compute it."""
        lines = [f"xor.b32 %r30, %r0, {self.flip}", f"mul.lo.u32 {to}, %r30, {self.lane}"]
        lines += [
            f"mad.lo.u32 {to}, {a}, {b}, {to}" for a, b in (("%r20", self.x), ("%r21", self.y), ("%r22", self.trip))
        ]
        return "".join(f" {each};\n" for each in (*lines, f"add.u32 {to}, {to}, {self.plus}"))


_NO_INDEX = Index(1, 0, 0, 0, 0, 0)


@dataclass(frozen=True)
class GlobalStep:
    """An access of each thread whose ``guard`` is below the bound, ``trips`` times; or a barrier (``kind`` "bar")."""

    kind: str
    buffer: int = 0
    index: Index = _NO_INDEX
    width: int = 4
    guard: Index | None = None
    bound: int = 0
    trips: int = 1
    branch: bool = False

    def text(self, n: int) -> str:
        """Its PTX."""
        if self.kind == "bar":
            return " bar.sync 0;\n"
        value = "%r0" if self.width == 4 else f"{{{', '.join(['%r0'] * (self.width // 4))}}}"
        loaded = "%r31" if self.width == 4 else f"{{{', '.join(f'%r{31 + i}' for i in range(self.width // 4))}}}"
        run = {
            "st": f"st.global.{_WIDTHS[self.width]} [%rd5], {value};",
            "ld": f"ld.global.{_WIDTHS[self.width]} {loaded}, [%rd5];",
            "red": "red.global.add.u32 [%rd5], %r0;",
        }[self.kind]
        made = (
            self.index.text("%r29")
            + f" mul.wide.u32 %rd4, %r29, {self.width};\n add.u64 %rd5, %rd{1 + self.buffer}, %rd4;\n"
        )
        if self.guard is not None:
            made += self.guard.text("%r28") + f" setp.lt.u32 %p5, %r28, {self.bound};\n"
            run = f"@!%p5 bra over{n};\n {run}\nover{n}:" if self.branch else f"@%p5 {run}"
        loop = f" add.u32 %r22, %r22, 1;\n setp.lt.u32 %p6, %r22, {self.trips};\n @%p6 bra again{n};\n"
        return f" mov.u32 %r22, 0;\nagain{n}:\n{made} {run}\n" + (loop if self.trips > 1 else "")

    def bytes_of(self, thread: int, x: int, y: int) -> Iterator[int]:
        """What a thread accesses."""
        for trip in range(self.trips):
            if self.guard is None or self.guard.of(thread, x, y, trip) < self.bound:
                at = self.index.of(thread, x, y, trip) * self.width
                yield from range(at, at + self.width)


class GlobalKernel(NamedTuple):
    """Its launch and what each thread does."""

    grid: tuple[int, int]
    cluster: int
    block: int
    steps: tuple[GlobalStep, ...]

    def target(self) -> Target:
        """What is checked."""
        head = " mov.u32 %r0, %tid.x;\n mov.u32 %r20, %ctaid.x;\n mov.u32 %r21, %ctaid.y;\n"
        head += " ld.param.u64 %rd1, [a];\n ld.param.u64 %rd2, [b];\n"
        body = head + "".join(each.text(n) for n, each in enumerate(self.steps))
        given = tuple(Parameter(name, Pointer()) for name in "ab")
        launch = Launch("kernel", (*self.grid, 1), (self.block, 1, 1), (self.cluster, 1, 1), parameters=given)
        made = extract(read_module(text_of(body, ".param .u64 a, .param .u64 b"), "global.ptx"), launch)
        return replace(target_of(made.program), kernel=made)

    def races(self) -> bool:
        """Whether two warps access the same bytes with no barrier in between, and not both read, or both add."""
        held: dict[tuple[int, int], set[tuple[tuple[int, int, int], int, str]]] = {}
        for x, y, thread in product(range(self.grid[0]), range(self.grid[1]), range(self.block)):
            phase = 0
            for step in self.steps:
                phase += step.kind == "bar"
                for byte in step.bytes_of(thread, x, y) if step.kind != "bar" else ():
                    held.setdefault((step.buffer, byte), set()).add(((x, y, thread // 32), phase, step.kind))
        return any(_meets(each) for each in held.values() if len(each) > 1)


def _meets(found: set[tuple[tuple[int, int, int], int, str]]) -> bool:
    for one, other in product(found, found):
        apart = one[0] != other[0] and (one[0][:2] != other[0][:2] or one[1] == other[1])
        if apart and {one[2], other[2]} not in ({"ld"}, {"red"}):
            return True
    return False


def random_kernel(seed: int) -> GlobalKernel:
    """Mostly strides that nearly fit: a CTA has as many words as threads, or a few more or less."""
    rng = random.Random(seed)
    block, grid = rng.choice((32, 64, 96)), (rng.choice((1, 2, 3, 6)), rng.choice((1, 1, 2, 3)))
    cluster = 2 if grid[0] % 2 == 0 and rng.random() < 0.2 else 1

    def index() -> Index:
        lane = rng.choice((1, 1, 1, 2, 0))
        x = rng.choice((block, block, block, 0, block - rng.randrange(1, 9), 2 * block, 1))
        y = rng.choice((block * grid[0], block * grid[0], 2 * block * grid[0], 0, block))
        trip = rng.choice((block * grid[0] * grid[1], 1, 0))
        return Index(
            lane, rng.choice((0, 0, 0, 1, 32, 33)) if block == 64 else 0, x, y, trip, rng.choice((0, 0, 4, 64))
        )

    def step() -> GlobalStep:
        guard = index() if rng.random() < 0.4 else None
        kind, width = rng.choice(("st", "st", "ld", "ld", "red")), rng.choice((4, 4, 4, 8, 16))
        trips, bound = rng.choice((1, 1, 1, 2, 3)), rng.randrange(1, 2 * block)
        width = 4 if kind == "red" else width
        return GlobalStep(kind, rng.randrange(2), index(), width, guard, bound, trips, branch=rng.random() < 0.5)

    steps = [GlobalStep("bar") if rng.random() < 0.2 else step() for _ in range(rng.randrange(1, 5))]
    return GlobalKernel(grid, cluster, block, tuple(steps))
