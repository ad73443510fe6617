"""The memory that a launch gives a kernel: bytes of the parameters and of what its pointers lead to, where known."""

import struct
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

from pipesim.bounds import MAX_POINTED_BYTES
from pipesim.errors import LaunchFileError
from pipesim.model.dependent_launch import EarlierUse
from pipesim.ptx.free.arrays import FreeArray
from pipesim.ptx.free.forms import Form, Terms, constant
from pipesim.ptx.free.varying import FreeInputs, Varying
from pipesim.ptx.launch.values import (
    ALL,
    ELEMENTS,
    LAPS_SEEN,
    TYPES,
    Array,
    Content,
    Field,
    FreeRange,
    Launch,
    Number,
    Pointer,
    Struct,
    TensorMap,
    size_of,
)
from pipesim.ptx.text.declarations import Function, Variable

_FLOATS = {"f16": "e", "f32": "f", "f64": "d"}


def encode_value(kind: str, value: int | float) -> bytes:
    """The bytes of a value; a whole number for a floating-point type gives its value, not its bits.

    An integer is taken modulo its size. Raises ValueError for a number that a floating-point type does not hold.
    """
    try:
        if kind in _FLOATS:
            return struct.pack(f"<{_FLOATS[kind]}", value)
        if kind == "bf16":
            return struct.pack("<f", value)[2:]
        return (int(value) % (1 << 8 * TYPES[kind])).to_bytes(TYPES[kind], "little")
    except OverflowError:
        raise ValueError(f"{value} does not fit {kind}") from None


PARAMETERS = 0x07E0_0000_0000_0000  #: the generic address of the first byte of the parameters
_PAGE = 256  #: bytes
_MOST_BYTES = 8  #: of a word
TILES = -16  #: where the number of tiles is that are handed out, if that is free: at no address
ALIGNED = 16  #: bytes, to which copies are aligned at most
_MOST_BITS = 29  #: of a word that may have any value
_FIRST = 1 << 40  #: the memory of the first pointer; that of the next one lies MAX_POINTED_BYTES further
GRID_WORKSPACE = 0x1FF_4000_0000  #: where the driver puts what ``grid.sync()`` of cooperative groups uses


def checked_number(kind: str, value: int | float | None) -> Number:
    """A scalar of a type; ValueError for a value that the type does not hold."""
    bits = 8 * TYPES[kind]
    if isinstance(value, float) and not kind.startswith(("f", "bf")):
        raise ValueError(f"{value} is not a whole number")
    if isinstance(value, int) and not -(1 << bits - 1) <= value < 1 << bits:
        raise ValueError(f"{value} does not fit {kind}")
    encode_value(kind, value or 0)
    return Number(kind, value)


def greatest(kind: str) -> int:
    """The greatest value that a word of a type may have which has any value."""
    return (1 << min(8 * TYPES[kind] - kind.startswith("s"), _MOST_BITS)) - 1


class FreeWord(NamedTuple):
    """A word that may have other values than the one which the launch gives it; ``size`` is in bytes.

    ``nearby``: only values nearby are looked for, with which the run is the same. ``in_array``: the launch has it in an
    array, which may be padding or a part of an address as well.
    """

    size: int
    now: int
    free: FreeRange
    nearby: bool = False
    in_array: bool = False

    def value(self, name: str, inputs: FreeInputs) -> int:
        """The word, of which ``name`` is the free input: how often the step is added to the least value."""
        low, high, step, _, lap, _, joint = self.free
        if self.nearby:
            return inputs.word(name, self.now, high)
        number, most = (self.now - self.free.seen) // step, (high - low) // step
        if joint:
            array = FreeArray(name, low, step, most, 1, (number,), size=0, place=(name, 0))
            found = inputs.element(array, 0, low + number * step)
        else:
            found = inputs.free(name, number, 0, most) * step + low
        return found + inputs.integer(LAPS_SEEN, inputs.laps.get(name, constant(0))) * lap if lap else found


@dataclass
class Region:
    """Bytes from an address on, and which of them are known; ``label`` says in words where they come from.

    ``path``: how ``--set`` names the pointers that lead to it, ``a:16:`` for one at byte 16 of what ``a`` leads to.
    """

    base: int
    label: str
    path: str = ""
    align: int = 1  #: of the address of the first byte, as far as the launch says it
    read_to: int = 0  #: the byte after the last one that was asked for
    free: list[FreeArray] = field(default_factory=list)  #: arrays whose elements may have other values
    _pages: dict[int, tuple[bytearray, bytearray]] = field(default_factory=dict)  #: bytes, and 1 for each known one

    @property
    def is_empty(self) -> bool:
        """Whether no byte is known."""
        return not self._pages

    def write(self, offset: int, data: bytes) -> None:
        """Write known bytes."""
        at = 0
        while at < len(data):
            number, first = divmod(offset + at, _PAGE)
            part = data[at : at + _PAGE - first]
            if number not in self._pages:  # a word far away takes no more than its page
                self._pages[number] = bytearray(_PAGE), bytearray(_PAGE)
            held, known = self._pages[number]
            held[first : first + len(part)] = part
            known[first : first + len(part)] = b"\1" * len(part)
            at += len(part)

    def get(self, offset: int, size: int) -> bytes | None:
        """``size`` bytes; None if one of them is unknown."""
        self.read_to = max(self.read_to, offset + size)
        found = b""
        while len(found) < size:
            number, first = divmod(offset + len(found), _PAGE)
            if number not in self._pages:
                return None
            held, known = self._pages[number]
            end = min(_PAGE, first + size - len(found))
            if 0 in known[first:end]:
                return None
            found += held[first:end]
        return found


class Image:
    """The parameters and memory of a launch. Everything is a function of the launch alone: addresses are made up.

    Raises LaunchFileError if the parameters are not those of the function.
    """

    def __init__(self, launch: Launch, function: Function) -> None:
        self._maps: dict[int, TensorMap] = {}
        self._pointers: dict[int, Pointer] = {}  #: by the address of their memory
        self._loads: dict[int, Callable[[int], int]] = {}  #: by size: one for all words that vary, as equal ones do
        self._unknown: dict[Terms, tuple[int, int]] = {}  #: constants with which an address of these terms is in memory
        #: of which nothing is known
        self._regions = [Region(PARAMETERS, "parameters")]
        self.free: dict[str, FreeArray] = {}
        self.free_words: dict[int, FreeWord] = {}  #: by the address of the first byte
        self.words: dict[int, FreeWord] = {}  #: the other integers of the parameters
        self.odd_lap = False  #: whether an alignment depends on a word of which a lap more has another remainder
        self.of_grid: dict[int, int] = {}  #: bytes of numbers of the parameters that are gridDim.x, by their addresses
        self.tables: dict[int, Variable] = {}  #: variables in constant memory, by their addresses
        self.tables_read: dict[str, None] = {}  #: those of which initial values were asked for
        self._contents = launch.contents
        require_parameters(launch, function)
        self._formals = [(formal.offset, launch.parameters[n].name) for n, formal in enumerate(function.params)]
        self._sizes = {formal.offset: formal.size for formal in function.params}
        for number, (given, formal) in enumerate(zip(launch.parameters, function.params, strict=True)):
            label = f"parameter {number}" + (f" ({given.name})" if given.name else "")
            self._place(self._regions[0], formal.offset, given.content, label)
        if launch.free_tiles is not None:
            tiles = launch.policies.launch_control or 0 if launch.left is None else launch.left[0]
            self.free_words[TILES] = FreeWord(4, tiles, launch.free_tiles)
        self._memories = tuple(self._regions[1:])  # in the order of their pointers
        self._regions.append(Region(GRID_WORKSPACE, "the workspace of grid.sync()"))
        self._regions.sort(key=lambda each: each.base)
        self._bases = [each.base for each in self._regions]

    @property
    def free_tiles(self) -> FreeWord | None:
        """How many tiles launch control or a counter hands out, where that is free."""
        return self.free_words.get(TILES)

    @property
    def laps_of_tiles(self) -> bool:
        """Whether that number lengthens a loop."""
        return self.free_tiles is not None and self.free_tiles.free.lap > 0

    def parameter(self, offset: int, size: int) -> int | None:
        """The unsigned value of this many bytes at an offset of the parameters; None if one of them is unknown."""
        return self.load(PARAMETERS + offset, size)

    def values_of(self, offset: int, size: int) -> tuple[int, ...]:
        """The values of this many bytes of the parameters, of several the least and the greatest; () for any."""
        word, now = self.free_words.get(PARAMETERS + offset), self.parameter(offset, size)
        if word is not None:
            return word.free.low, max(word.free.high, word.free.most)
        return () if now is None else (now,)

    def load(self, address: int, size: int) -> int | None:
        """The unsigned value of this many bytes at a generic or global address; None if one of them is unknown."""
        region = self._region(address)
        if region is None:
            return self._initial(address, size)
        found = region.get(address - region.base, size)
        return None if found is None else int.from_bytes(found, "little")

    def _initial(self, address: int, size: int) -> int | None:
        """Of a table in constant memory what its initial values say, if it has some, and none is an address."""
        base, table = self.table_at(address)
        if table is None or not table.init or table.addresses or address + size > base + table.size:
            return None
        self.tables_read[table.name] = None
        return int.from_bytes(table.init[address - base : address - base + size], "little")  # the rest is 0

    def table_at(self, address: int) -> tuple[int, Variable | None]:
        """The variable in constant memory at an address, and its first byte."""
        base = max((at for at in self.tables if at <= address), default=0)
        table = self.tables.get(base)
        return base, table if table is not None and address < base + table.size else None

    def with_free_words(self, found: int, address: int, size: int, inputs: FreeInputs) -> int:
        """These bytes, which are ``found`` in this run, with other values of the words that may have any."""
        words = self.free_words or self.words
        for at in range(address + 1 - _MOST_BYTES, address + size):
            word = words.get(at)
            low, high = max(at, address), min(at + word.size if word is not None else at, address + size)
            if word is not None and low < high:
                shift, mask = 8 * (low - at), (1 << 8 * (high - low)) - 1
                other = word.value(word.free.name or self.place(at), inputs) >> shift & mask
                found = found + (other - (word.now >> shift & mask)) * (1 << 8 * (low - address))
        return found

    def free_array(self, address: int) -> FreeArray | None:
        """The free array that has this byte; None if it is not of one."""
        if not self.free:
            return None
        region = self._region(address)
        arrays = region.free if region is not None else []
        return next((a for a in arrays if a.address <= address < a.address + a.count * a.size), None)

    def is_unknown(self, address: Varying, size: int) -> bool:
        """Whether nothing is known of these bytes at any address that a varying one may be."""
        form = address.form
        found = self._unknown.get(form.terms)
        if found is None:
            region = self._region(form.low)
            empty = region is not None and region.is_empty
            base = region.base if region is not None and empty else 0
            terms = Form(0, form.terms)
            found = (base - terms.low, base + MAX_POINTED_BYTES - terms.high) if empty else (0, 0)
            self._unknown[form.terms] = found
        return found[0] <= form.constant and form.constant + size <= found[1]

    def varying(self, address: Varying, size: int) -> int | None:
        """The value at an address that varies with free inputs; None if it is not known in this run.

        It is a word of no free array.
        """
        now = self.load(int.__int__(address), size)
        if now is None:
            return self.load(int(address), size)
        inputs, most = address.inputs, (1 << 8 * size) - 1
        load = self._loads.setdefault(size, partial(self._fixed, size))
        name = f"a word of {size} bytes in {id(self)}"
        form = inputs.forms.apply(name, load, (address.form,), -1, most, elementwise=False)
        inputs.require_range(form, 0, most)
        return inputs.integer(now, form)

    def _fixed(self, size: int, at: int) -> int:
        """A word of no free array, -1 if it is not known or of one."""
        found = self.load(at, size)
        return -1 if found is None or self.free_array(at) or self.free_array(at + size - 1) else found

    def remainder(self, inputs: FreeInputs, offset: int, size: int, instead: int | None = None) -> tuple[int, int]:
        """What is sure of this many bytes of the parameters: a power of two, and the value modulo it; of a pointer
        only its alignment. Of a word that may have other values they have to have this remainder as well, or they have
        the one that is to be looked at ``instead``.
        """
        value = self.parameter(offset, size)
        if value is None:
            return 1, 0
        for at, word in self.free_words.items():
            if at < PARAMETERS + offset + size and PARAMETERS + offset < at + word.size:
                if instead is not None and at == PARAMETERS + offset:
                    return ALIGNED, instead
                int(word.value(word.free.name or self.place(at), inputs) % ALIGNED)
                self.odd_lap = self.odd_lap or word.free.lap % ALIGNED > 0
                return ALIGNED, value % ALIGNED
        region = self._region(value)
        return (1 << 8 * size, value) if region is None else (region.align, 0)

    def as_read(self, launch: Launch) -> Launch:
        """The launch of this image without the ends of arrays in memory that have not been asked for."""
        memories = iter(self._memories)
        parameters = tuple(each._replace(content=_as_read(each.content, memories)) for each in launch.parameters)
        return replace(launch, parameters=parameters)

    def tensor_map(self, address: int) -> TensorMap | None:
        """The tensor map at an address, None if none is known there."""
        return self._maps.get(address)

    def memory_at(self, address: int) -> tuple[int, str] | None:
        """The first address of the memory of the launch that an address is in, and its name; None outside of all."""
        region = self._region(address)
        return None if region is None else (region.base, region.label)

    def describe(self, address: int) -> str:
        """An address in words: ``byte 16 behind parameter 3 (tiles)``; "" if it is in no memory of the launch."""
        region = self._region(address)
        if region is None:
            return ""
        offset = address - region.base
        return (
            f"byte {offset:,} of the parameters" if region.base == PARAMETERS else f"byte {offset:,} at {region.label}"
        )

    def describe_unknown(self, address: int) -> str:
        """The same of a word that is not known, with the option that gives it."""
        return f"{self.describe(address)}, which --set {self.place(address)}=VALUE gives" if self.place(address) else ""

    def option(self, address: int, kind: str) -> str:
        """The option that gives a word of a type which is not known, or all of its array; "" outside of the launch."""
        region = self._region(address)
        if region is None:
            return ""
        if region.base == PARAMETERS:
            return f"--set {self.place(address)}=VALUE"
        return f"--set {region.path}0={'' if kind.endswith('32') else f'u{kind[1:]}:'}VALUE,VALUE"

    def pointer_to(self, address: int) -> tuple[str, int]:
        """The name of the parameter that points to the memory of an address, or "", and the bytes before it."""
        region = self._region(address)
        if region is None:
            return "", address % (1 << 12)
        return region.path.rstrip(":"), address - region.base

    def place(self, address: int) -> str:
        """A place of a launch as ``--set`` and ``--box`` have it: the name of a parameter, else bytes; "" outside."""
        region = self._region(address)
        if region is None or region.base == GRID_WORKSPACE:
            return ""
        offset = address - region.base
        if region.base != PARAMETERS:
            return f"{region.path}{offset}"
        for first, size in self._sizes.items():
            if first <= offset < first + size and (name := self._name_at(first)):
                return name if offset == first else f"{offset}" if name == ALL else f"{name}+{offset - first}"
        return f"{offset}"

    def _name_at(self, offset: int) -> str:
        """The name of a parameter that is alone in having it; else ""."""
        name = dict(self._formals).get(offset, "")
        alone = [each for _, each in self._formals].count(name) == 1  # else the name means the first
        return name if name.isidentifier() and alone else ""

    def place_of_map(self, address: int) -> tuple[str, str]:
        """A tensor map in words, and the place of ``--box`` that gives its box; both "" outside of the launch.

        ``parameter 2 (b), byte 256 of the parameters`` and ``b``.
        """
        region = self._region(address)
        if region is None:
            return "", ""
        offset = address - region.base
        number = bisect_right(self._formals, (offset, "\U0010ffff")) - 1
        words = self.describe(address)
        if region.base == PARAMETERS and number >= 0:
            name = self._formals[number][1]
            words = f"parameter {number}{f' ({name})' if name else ''}, {words}"
        return words, self.place(address)

    def buffer_at(self, address: int) -> int:
        """The first address of the buffer that has an address, or that of a tensor map; -1 if it is not known which."""
        region = self._region(address)
        return -1 if region is None else address if region.base == PARAMETERS else region.base

    def buffer(self, base: int) -> tuple[str, EarlierUse]:
        """A buffer or a tensor map in words, and what earlier kernels do with it."""
        held: Pointer | TensorMap | None = self._pointers.get(base) or self._maps.get(base)
        region = self._region(base)
        if held is None or region is None:
            return "", EarlierUse.UNKNOWN
        words = region.label if isinstance(held, Pointer) else self.place_of_map(base)[0].partition(", byte")[0]
        return words, held.earlier or EarlierUse.UNKNOWN

    def tensor_bytes(self, base: int) -> int:
        """From the first to the last byte of the tensor of the map at an address; -1 if that is not known."""
        each = self._maps.get(base)
        if each is None or not each.dims or not each.element or len(each.strides) < len(each.dims) - 1:
            return -1
        rows = sum((size - 1) * stride for size, stride in zip(each.dims[1:], each.strides, strict=False))
        return rows + each.dims[0] * ELEMENTS[each.element] // 8

    @property
    def names_earlier_kernels(self) -> bool:
        """Whether the launch says that earlier kernels use some buffer."""
        held: list[Pointer | TensorMap] = [*self._maps.values(), *self._pointers.values()]
        return any(each.earlier in (EarlierUse.READS, EarlierUse.WRITES) for each in held)

    def _region(self, address: int) -> Region | None:
        found = bisect_right(self._bases, address) - 1
        return self._regions[found] if found >= 0 and address - self._bases[found] < MAX_POINTED_BYTES else None

    def _place(self, region: Region, offset: int, content: Content, label: str) -> None:
        match content:
            case Number(type=kind, value=value, free=free):
                if free is not None and free.joint:
                    chosen = (low for named, _, low in self._contents if named == free.name)
                    value = next(chosen, free.low) + free.seen - free.low
                if value is not None:
                    region.write(offset, encode_value(kind, value))
                self.of_grid |= {region.base + offset: TYPES[kind]} if content.of_grid else {}
                if free is not None and isinstance(value, int):
                    self.free_words[region.base + offset] = FreeWord(TYPES[kind], value, free)
                elif region.base == PARAMETERS and value is not None:
                    self._place_nearby(offset, kind, value)
            case Array(type=kind, values=values):
                if content.free is not None:
                    values = self._place_free(region, offset, content, label)
                region.write(offset, b"".join(encode_value(kind, value) for value in values))
                for index, value in enumerate(values) if region.base == PARAMETERS else ():
                    self._place_nearby(offset + index * TYPES[kind], kind, value, in_array=True)
            case TensorMap():
                self._maps[region.base + offset] = content
            case Struct(fields=fields):
                for each in fields:
                    self._place(region, offset + each.offset, each.content, label)
            case Pointer(align=align, contents=contents):
                base = _FIRST + (len(self._regions) - 1) * MAX_POINTED_BYTES
                base = -(-base // align) * align
                name = self._name_at(offset) if region.base == PARAMETERS else ""
                memory = Region(base, label, f"{region.path}{name or offset}:", align)
                self._regions.append(memory)
                self._pointers[base] = content
                region.write(offset, base.to_bytes(8, "little"))
                for each in contents:
                    inner = f"{label}, byte {each.offset:,}" if isinstance(each.content, Pointer) else label
                    self._place(memory, each.offset, each.content, inner)

    def _place_nearby(self, offset: int, kind: str, value: int | float, *, in_array: bool = False) -> None:
        """Note an integer of the parameters of which values nearby are looked for."""
        most = greatest(kind)
        if isinstance(value, int) and not kind.startswith(("f", "bf")) and 0 <= value <= most:
            self.words[PARAMETERS + offset] = FreeWord(TYPES[kind], value, FreeRange(0, most), True, in_array)

    def _place_free(self, region: Region, offset: int, array: Array, label: str) -> tuple[int, ...]:
        """Note a free array; what it holds in this run. LaunchFileError where an array cannot be free."""
        size, free = TYPES[array.type], array.free
        assert free is not None
        if region.base == PARAMETERS or offset % size:
            fact = "is passed by value" if region.base == PARAMETERS else f"begins at byte {offset:,}"
            raise LaunchFileError(
                f"an array that is free {fact}",
                place=label,
                cause=f"only elements of {size} bytes in memory that a pointer leads to can be free",
                correction="use --any for a parameter" if region.base == PARAMETERS else f"use a multiple of {size}",
            )
        name = region.path.rstrip(":") + (f"+{offset}" if offset else "")
        rises = None if free.rises_by is None else (free.rises_by[0] // free.step, free.rises_by[1] // free.step)
        most, count, at = (free.high - free.low) // free.step, len(array.values), (region.path, offset)
        usual = tuple((value - free.low) // free.step for value in array.values)
        made = FreeArray(name, free.low, free.step, most, count, usual, rises, region.base + offset, size, at)
        self.free[name] = made
        region.free.append(made)
        values = list(array.values)
        for named, index, value in self._contents:
            if named == name:
                values[index] = value
        return tuple(values)


def _as_read(content: Content, memories: Iterator[Region]) -> Content:
    """A content with the arrays at its pointers as far as they were read; ``memories`` are those of its pointers."""
    match content:
        case Struct(size=size, fields=fields):
            return Struct(size, tuple(each._replace(content=_as_read(each.content, memories)) for each in fields))
        case Pointer(contents=contents):
            end = next(memories).read_to
            found = []
            for offset, inner in contents:
                if isinstance(inner, Array):
                    count = -(-max(0, end - offset) // TYPES[inner.type])
                    inner = replace(inner, values=inner.values[:count])
                    if not inner.values:
                        continue
                found.append(Field(offset, _as_read(inner, memories)))
            return replace(content, contents=tuple(found))
        case _:
            return content


def require_parameters(launch: Launch, function: Function) -> None:
    """LaunchFileError unless the launch has the function's parameters."""
    if len(launch.parameters) != len(function.params):
        raise LaunchFileError(
            f"the launch file has {len(launch.parameters)} parameters, and {function.name} has {len(function.params)}",
            place="parameters",
            cause="a compiler may add parameters that the source does not show",
            correction="write a template with `pipesim new --ptx KERNEL.ptx`, which lists them",
        )
    for number, (given, formal) in enumerate(zip(launch.parameters, function.params, strict=True)):
        size = size_of(given.content)
        if size != formal.size:
            raise LaunchFileError(
                f"parameter {number} has {size} bytes in the launch file and {formal.size} in {function.name}",
                place=f"parameters[{number}]",
                correction=f"use a value of {formal.size} bytes, or a struct with fields",
            )
