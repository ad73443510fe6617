"""What the warps of one cluster access together: shared, tensor and global memory, and what is known of these."""

from collections.abc import Collection, Iterable, Sequence
from functools import cached_property
from itertools import product
from math import prod

from pipesim.model.barrier import BarrierState
from pipesim.model.ops import Space
from pipesim.model.tables import OPEN_WORD
from pipesim.ptx.emit.record import Place, StreamRecorder
from pipesim.ptx.emulate.accesses import access_global
from pipesim.ptx.emulate.code import Code, DecodedStep
from pipesim.ptx.emulate.data_answers import DataAnswers
from pipesim.ptx.emulate.global_memory.global_accesses import GlobalAccesses, kind_of, lanes_of_address
from pipesim.ptx.emulate.global_memory.global_memory import GlobalMemory, HandedOut
from pipesim.ptx.emulate.global_memory.global_words import GlobalWords
from pipesim.ptx.emulate.launch_events import LaunchEvents
from pipesim.ptx.emulate.map_fences import MAP_BYTES, MapFences, place_of_map
from pipesim.ptx.emulate.memory import Bytes, Items, in_shared
from pipesim.ptx.emulate.shared_uses import settled_reads
from pipesim.ptx.emulate.stop import EVERYWHERE, EmulationStop, Notes, SharedOrder, TouchedBytes, UnreadAccess
from pipesim.ptx.emulate.tensor_allocations import TensorAllocations
from pipesim.ptx.emulate.values import FULL, Leaf, PerLane, Ramp, Unknown, Value, lanes_in, leaf_of, same
from pipesim.ptx.emulate.warp import EmulatedWarp
from pipesim.ptx.emulate.ways import DividedWarp
from pipesim.ptx.flow.opcodes import is_try
from pipesim.ptx.free.varying import FreeInputs, Varying
from pipesim.ptx.launch.image import Image
from pipesim.ptx.launch.values import Launch
from pipesim.ptx.text.instruction import Instruction

SOME_CTAS = "some of gridDim.x"  #: from 1 to all of them
_ENDS = ("ld", "st", "atom", "red", "ldmatrix", "stmatrix")  #: whose accesses end before the thread's next barrier
_UNORDERED = dict.fromkeys(("atom", "red"), SharedOrder.ATOMICS)
_UNORDERED |= dict.fromkeys(("st", "stmatrix"), SharedOrder.STORES)
_MOST_ANSWERS = 4_096  #: of an atomic, a load, or a try for one phase, in a loop that waits for another one


class ClusterMemory:
    """The memory of the CTAs of one cluster. ``ctas``: how many; ``code``: what every warp runs.

    ``together``: the places in the grid of CTAs that are followed together, each a cluster of its own, () for one
    cluster; ``words``: those of global memory by which they talk.
    """

    def __init__(self, code: Code, launch: Launch, image: Image, inputs: FreeInputs) -> None:
        self.code, self.launch, self.image, self.inputs = code, launch, image, inputs
        self.data = DataAnswers(launch, inputs) if launch.any_data else None
        self.together = launch.followed_together
        self.ctas = len(self.together) or prod(launch.cluster)
        self.recorder = StreamRecorder()
        self.notes = Notes()
        followed = code.waits_for_kernels or launch.in_sequence or image.names_earlier_kernels
        self.launch_events = LaunchEvents(self.recorder, image) if followed else None
        #: Fields of tensor maps that the kernel writes.
        self.written_maps: dict[object, dict[tuple[str, int], int]] = {}
        self.maps = MapFences()
        self.barriers: dict[Place, BarrierState] = {}
        self.stored_by: dict[object, int] = {}  #: the first agent that left an item of stores
        self.bytes = [Bytes() for _ in range(self.ctas)]
        self.items = [Items() for _ in range(self.ctas)]
        self.tensor = [Items() for _ in range(self.ctas)]
        self.columns = [TensorAllocations() for _ in range(self.ctas)]
        self.tensor_lanes = 0  #: of a part of tensor memory, 0 until a warp asks
        self.tiles = HandedOut(launch, image, inputs)
        self.globals = GlobalMemory(image, launch.policies, inputs, self.tiles)
        self.globals.length_of_grid = self.length_of_grid(0) if launch.any_ctas else None
        times = prod(map(self.length_of_grid, range(3))) if launch.for_all else 1
        self.words = GlobalWords(image, launch, times, code.words_met) if self.together or launch.inside else None
        self.global_accesses = GlobalAccesses(self.recorder) if code.on_global else None
        self._global_items = Items()
        self._items = 0
        self._interned: dict[object, int] = {}
        self._loads: dict[int, Unknown] = {}
        self._stores_orders = False  #: whether a value that tells of what others have done is in shared memory
        self._answers: dict[tuple[int, int], tuple[Value, int]] = {}  #: of atomics, and how often

    def number_in_grid(self, axis: int) -> Value:
        """The cluster's number along an axis of the grid, which is another one for other clusters."""
        clusters = (not axis and self.launch.any_ctas) or self.launch.grid[axis] // self.launch.cluster[axis]
        now = self.launch.first_cta[axis] // self.launch.cluster[axis]
        return self.inputs.free(self.launch.place_name(axis), now, 0, clusters - 1)

    def length_of_grid(self, axis: int) -> int:
        """The CTAs along an axis: any number is the sum of two, so that one of them may be any lesser number."""
        now, most = self.launch.grid[axis], self.launch.any_ctas
        if axis or not most:
            return now
        return self.inputs.free(SOME_CTAS, now, 1, most) + self.inputs.free("all others of gridDim.x", 0, 0, most)

    def item(self, value: object = None) -> int:
        """A number for what a range of bytes holds: the same for the same value, a new one without."""
        if value is not None and value in self._interned:
            return self._interned[value]
        self._items += 1
        if value is not None:
            self._interned[value] = self._items
        return self._items

    def items_of(self, space: Space, cta: int) -> Items:
        """The items of a memory."""
        if space == Space.GLOBAL:
            return self._global_items
        return self.tensor[cta] if space == Space.TENSOR else self.items[cta]

    def product_item(self, warp: EmulatedWarp, key: tuple[int, ...]) -> int:
        """What a product leaves: the same for products one after the other with nothing in between."""
        at = len(self.recorder.streams[warp.agent].code) if not warp.pending.issued else -1
        held = warp.products.get(key)
        if held is None or at >= 0:
            held = warp.products[key] = self.item()
        return held

    def columns_around(self, cta: int, column: int, most: int) -> int:
        """Columns of tensor memory from this one on that are allocated."""
        end = self.columns[cta].end
        return max(min(end - column, most), 1) if end else most

    @cached_property
    def generic_is_global(self) -> bool:
        """Whether a generic address that is not known is one of global memory: the kernel makes none of shared."""
        made = (each for each in self.code.body if each.opcode in ("cvta", "mapa") and not each.has("to"))
        return not any(
            each.has_any("shared", "shared::cta", "shared::cluster") == (each.opcode == "cvta") for each in made
        )

    def may_touch(
        self, warp: DividedWarp, position: int, why: str, *, writes: bool, reach: TouchedBytes = EVERYWHERE
    ) -> None:
        """An access is left out that may touch shared memory."""
        self.notes.left_out.setdefault(position, why)
        self.may_be_touched(warp, position, writes=writes, reach=reach)

    def may_be_touched(self, warp: DividedWarp, position: int, *, writes: bool, reach: TouchedBytes) -> None:
        """Remember who may touch that; what is known of it is not known any more if it may be written."""
        each = self.code.body[position]
        ends = each.opcode in _ENDS and not each.has_any("async", "bulk")
        order = _UNORDERED.get(each.opcode, SharedOrder.NEEDED) if ends else SharedOrder.NEEDED
        barriers = self.recorder.streams[warp.agent].barriers if ends else None
        self.notes.accesses[UnreadAccess(position, warp.agent, writes, reach, barriers, order)] = None
        if order is SharedOrder.STORES and warp.mask.bit_count() > 1:
            self.notes.equal_stores.add(position)
        if writes:
            self.recorder.cut(reach.first, reach.end)
            for known in self.bytes if reach.cta < 0 else (self.bytes[reach.cta],):
                known.forget(reach.first, reach.end)

    @property
    def settled(self) -> frozenset[int]:
        """The positions of strong loads of shared memory that see the same in every schedule."""
        polls, accesses = self.notes.polls, list(self.notes.accesses)
        return settled_reads(polls, accesses, self.recorder) if polls else frozenset()

    def unknown_load(self, each: Instruction) -> Unknown:
        """What a load of shared memory gives where nothing is known."""
        if each.position not in self._loads:
            what = f"a load from shared memory ({each.mnemonic})"
            self._loads[each.position] = Unknown(Leaf(what, each.line, orders=self._stores_orders))
        return self._loads[each.position]

    def store_shared(self, values: Iterable[Value]) -> None:
        """Values are stored to shared memory: loads of what is not known there tell of what these tell of."""
        if not self._stores_orders and any(leaf.orders for leaf in map(leaf_of, values) if leaf is not None):
            self._stores_orders, self._loads = True, {}

    def atomic(self, warp: EmulatedWarp, each: Instruction, address: Value, operands: list[Value]) -> Value:
        """What an atomic returns: on shared memory unknown, since warps come there in any order."""
        leaf = Leaf(f"the result of an atomic ({each.mnemonic})", each.line, orders=True)
        if not isinstance(address, int):
            for lane in lanes_in(warp.mask) if isinstance(address, PerLane) else ():
                self.atomic(warp, each, address.each[lane], [Unknown(leaf)])  # of which only the place is known
            return Unknown(leaf)
        if each.has_any("shared", "shared::cta", "shared::cluster") or in_shared(address):
            return Unknown(leaf)
        asked = len(self.tiles.answers)
        found = self.globals.atomic(warp.agent, address, each, operands, warp.mask.bit_count() if not warp.maybe else 0)
        if len(self.tiles.answers) > asked and isinstance(found, int):
            self.recorder.execute(warp.agent, each.position, warp.mask)  # a recording has the answer
        self.is_asked(warp, each, found)
        return found

    def is_asked(self, warp: EmulatedWarp, each: Instruction, found: Value) -> None:
        """A word holds this, or a try is for this. EmulationStop in a loop with the same again and again."""
        value, times = self._answers.get((warp.agent, each.position), (found, 0))
        times = times + 1 if found.__class__ in (int, Varying) and same(found, value) else 0
        self._answers[warp.agent, each.position] = found, times
        if times > _MOST_ANSWERS and is_try(each):
            raise EmulationStop(f"what follows depends on the answers of more than {_MOST_ANSWERS:,} tries")
        if times > _MOST_ANSWERS and self.code.regions.loops.polls(each.position):
            raise EmulationStop(f"{each.mnemonic} returns {found} each time, and nothing here changes the word")

    def forget_results(self, warp: EmulatedWarp, step: DecodedStep, what: str) -> None:
        """The results of an instruction are not known."""
        warp.write_results(step, Unknown(Leaf(what, step.instruction.line)))

    def on_global(self, warp: EmulatedWarp, each: Instruction, address: Value, size: int) -> None:
        """The lanes that execute access ``size`` bytes each of global memory, or of another one by its address."""
        if self.global_accesses is not None and each.position in self.code.on_global:
            if self.words is not None and each.position in self.code.on_written:
                warp.apart.access_global(warp.mask, each.position)
            sure = not warp.maybe and not warp.has_two_ways
            if not sure:
                why = OPEN_WORD if warp.has_two_ways else warp.unsure
                self.global_accesses.unsure.setdefault(warp.agent, {})[each.position] = why
            self.global_accesses.add(warp.agent, each, address, size, warp.mask, sure=sure)
            if self.code.changes_maps and each.opcode != "tensormap" and kind_of(each.opcode, each.modifiers).writes:
                ramp = isinstance(address, Ramp) and warp.mask == FULL and 0 < address.step <= size
                lanes = (address.first,) if ramp else lanes_of_address(address, warp.mask)
                nbytes = 31 * address.step + size if ramp else size
                parts = product(lanes, (*range(0, nbytes, MAP_BYTES), nbytes - 1))
                places = {place_of_map(one + at, MAP_BYTES) for one, at in parts}
                self.maps.change(places, warp, each.position, released=False)
            if each.position in self.code.on_written and not self.code.global_operations:
                self.global_accesses.follow_lanes(warp.exchanges, warp.way, each, address, size, warp.mask)
            if self.launch_events is not None:
                self.launch_events.access(warp, each, address, sure=sure)
            if self.code.global_operations:
                access_global(self, warp, each, address, size, self.code.global_operations, self.code.global_base)

    def leaves_out(self, warp: DividedWarp, positions: Sequence[int], leaf: Leaf | None) -> bool:
        """Leave out accesses of shared memory on ways that may be gone again and again, as data decides.

        Whether that may be: not where what others have done decides it, for then the warp may wait for them.
        """
        if leaf is None or leaf.orders or self.words is not None:
            return False
        for position in positions:
            each = self.code.body[position]
            if self.generic_is_global and "shared" not in each.spaces:
                continue
            writes = each.opcode not in ("ld", "ldu", "ldmatrix")
            self.may_touch(warp, position, f"how often it runs depends on {leaf.what}", writes=writes)
        return True

    def leave_open(self, positions: Collection[int], leaf: Leaf | None) -> None:
        """It is not known whether and how often a warp accesses global memory at these positions."""
        if self.global_accesses is not None:
            self.global_accesses.leave_open(positions, leaf)

    def left_out(self, warp: DividedWarp, step: DecodedStep, leaf: Leaf | None) -> None:
        """An access is left out: its results are not known."""
        if step.instruction.position in self.code.on_global:
            self.leave_open((step.instruction.position,), leaf)
        elif self.launch_events is not None and step.instruction.opcode == "griddepcontrol":
            self.launch_events.unsure.add(step.instruction.position)
        self.notes.left_out.setdefault(step.instruction.position, leaf.what if leaf else "an unknown value")
        for register in step.results:
            warp.R[register] = self.code.unknown_value(leaf)
