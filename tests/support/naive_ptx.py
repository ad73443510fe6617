"""Random small kernels in PTX, and what each of their threads computes: one instruction of one thread at a time.

It shares nothing with ``pipesim.ptx``: the text is taken apart by blanks and commas, and each instruction is written
down once more, as the PTX ISA describes it, for plain integers.
"""

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from random import Random

THREADS = 32
WORDS = [f"%r{n}" for n in range(10)]
LONGS = [f"%rd{n}" for n in range(4)]
PREDICATES = [f"%p{n}" for n in range(4)]
OPEN = "%r9"  #: at first the word that the launch leaves open
HEAD = """.version 8.6
.target sm_90a
.address_size 64
.visible .entry kernel(.param .u32 open_word)
{
 .reg .pred %p<8>;
 .reg .b32 %r<40>;
 .reg .b64 %rd<8>;
"""
_MOST_STEPS = 100_000


# the kernels
#: A fence before the end, so that no lane that jumps there ends before the others, whose registers are compared.
_END = " membar.cta;\n ret;\n}\n"


class Kernel:
    """The body of a random kernel: straight code, guarded code, branches of both kinds, loops of up to four rounds."""

    def __init__(self, seed: int, blocks: int = 6) -> None:
        self.random = Random(seed)
        self.lines: list[str] = []
        self._labels = self._counters = 0
        self._set_up()
        self._blocks(blocks, 0)

    @property
    def text(self) -> str:
        """The file."""
        return HEAD + "".join(f" {line}\n" if line[-1] == ";" else f"{line}\n" for line in self.lines) + _END

    def _set_up(self) -> None:
        one = self.random
        self.lines += ["mov.u32 %r0, %tid.x;", "mov.u32 %r1, %laneid;", f"ld.param.u32 {OPEN}, [open_word];"]
        self.lines += [f"mov.u32 {name}, {one.choice((0, 1, 7, 255, one.getrandbits(32)))};" for name in WORDS[2:9]]
        self.lines += [f"cvt.u64.u32 {name}, {one.choice(WORDS[:9])};" for name in LONGS]
        self.lines += [f"setp.lt.u32 {name}, %r0, {one.randrange(33)};" for name in PREDICATES]
        self.lines += ["add.cc.u32 %r8, %r7, %r6;"]

    def _blocks(self, count: int, depth: int) -> None:
        for _ in range(count):
            kind = self.random.randrange(4) if depth < 2 else 0
            if kind == 1:
                self._either(depth)
            elif kind == 2:
                self._loop(depth)
            else:
                self.lines += [self._instruction() for _ in range(self.random.randrange(1, 7))]

    def _either(self, depth: int) -> None:
        other, after = self._label(), self._label()
        self.lines.append(f"@{self._guard()} bra {other};")
        self._blocks(self.random.randrange(1, 3), depth + 1)
        self.lines += [f"bra {after};", f"{other}:"]
        if self.random.random() < 0.7:
            self._blocks(1, depth + 1)
        self.lines.append(f"{after}:")

    def _loop(self, depth: int) -> None:
        begin, counter = self._label(), f"%r{20 + self._counters}"
        self._counters += 1
        rounds = self.random.choice(("1", "3", "%r0", "%r1", self.random.choice(WORDS[:9])))
        self.lines += [f"and.b32 {counter}, {rounds}, 3;" if rounds[0] == "%" else f"mov.u32 {counter}, {rounds};"]
        self.lines.append(f"{begin}:")
        self._blocks(self.random.randrange(1, 3), depth + 1)
        self.lines += [f"setp.ne.u32 %p6, {counter}, 0;", f"sub.u32 {counter}, {counter}, 1;", f"@%p6 bra {begin};"]

    def _label(self) -> str:
        self._labels += 1
        return f"L{self._labels}"

    def _guard(self) -> str:
        return self.random.choice(("", "!")) + self.random.choice(PREDICATES)

    def _instruction(self) -> str:
        text = self._bare()
        return f"@{self._guard()} {text}" if self.random.random() < 0.15 else text

    def _bare(self) -> str:
        one = self.random
        r, long = one.choice(WORDS), one.choice(LONGS)
        name = one.choice(sorted(_FORMS))
        values = {"d": r, "w": long, "p": one.choice(PREDICATES), "q": one.choice(PREDICATES)}
        values |= {
            "a": one.choice(WORDS),
            "b": self._word(),
            "c": self._word(),
            "x": one.choice(LONGS),
            "y": one.choice(LONGS),
        }
        values |= {"n": str(one.randrange(40)), "i": str(one.randrange(1, 99)), "t": str(one.randrange(256))}
        return f"{name} {_FORMS[name].format(**values)};"

    def _word(self) -> str:
        """A register or a number."""
        one = self.random
        return one.choice((*WORDS, *WORDS, str(one.choice((0, 1, 31, 255, one.getrandbits(32))))))


_THREE = "{d}, {a}, {b}"
_COMPARED = ("eq", "ne", "lt", "le", "gt", "ge")
#: Mnemonics and the shape of their operands.
_FORMS: Mapping[str, str] = {
    **dict.fromkeys(("add.u32", "sub.s32", "mul.lo.u32", "mul.hi.u32", "mul.hi.s32", "min.u32", "min.s32"), _THREE),
    **dict.fromkeys(("max.u32", "max.s32", "and.b32", "or.b32", "xor.b32", "shl.b32", "shr.u32", "shr.s32"), _THREE),
    **dict.fromkeys(("div.u32", "rem.u32", "div.s32", "rem.s32"), "{d}, {a}, {i}"),
    **dict.fromkeys(("not.b32", "neg.s32", "abs.s32", "popc.b32", "clz.b32", "brev.b32", "mov.u32"), "{d}, {a}"),
    **dict.fromkeys(("cvt.u32.u8", "cvt.s32.s8", "cvt.s32.s16", "bfind.u32", "bfind.s32"), "{d}, {a}"),
    **dict.fromkeys(("cvt.u64.u32", "cvt.s64.s32"), "{w}, {a}"),
    **dict.fromkeys(("mul.wide.u32", "mul.wide.s32"), "{w}, {a}, {b}"),
    **dict.fromkeys(("add.u64", "sub.u64", "xor.b64", "mul.lo.u64", "max.s64"), "{w}, {x}, {y}"),
    **dict.fromkeys(("shl.b64", "shr.u64", "shr.s64"), "{w}, {x}, {n}"),
    **{f"setp.{how}.{kind}32": "{p}, {a}, {b}" for how in _COMPARED for kind in "us"},
    **dict.fromkeys(("setp.lt.and.u32", "setp.eq.or.s32", "setp.ge.xor.s32"), "{p}, {a}, {b}, {q}"),
    "cvt.u32.u64": "{d}, {x}",
    "mad.lo.s32": "{d}, {a}, {b}, {c}",
    "selp.b32": "{d}, {a}, {b}, {q}",
    "bfe.u32": "{d}, {a}, {n}, {b}",
    "bfe.s32": "{d}, {a}, {n}, {b}",
    "bfi.b32": "{d}, {a}, {b}, {n}, {n}",
    "prmt.b32": "{d}, {a}, {b}, {c}",
    "lop3.b32": "{d}, {a}, {b}, {c}, {t}",
    "shf.l.wrap.b32": "{d}, {a}, {b}, {c}",
    "shf.r.clamp.b32": "{d}, {a}, {b}, {c}",
    **dict.fromkeys(("sad.u32", "sad.s32", "mad24.lo.u32", "mad24.hi.s32", "slct.b32.s32"), "{d}, {a}, {b}, {c}"),
    **dict.fromkeys(("dp4a.u32.u32", "dp4a.s32.u32", "dp4a.u32.s32", "dp4a.s32.s32"), "{d}, {a}, {b}, {c}"),
    **dict.fromkeys(("mul24.lo.s32", "mul24.hi.u32", "add.sat.s32", "sub.sat.s32"), _THREE),
    **dict.fromkeys(("add.cc.u32", "addc.u32", "addc.cc.s32", "sub.cc.u32", "subc.cc.u32", "subc.s32"), _THREE),
    **dict.fromkeys(("mad.lo.cc.u32", "mad.hi.cc.s32", "madc.lo.cc.s32", "madc.hi.u32"), "{d}, {a}, {b}, {c}"),
    **{
        f"{name}.{mode}.{kind}": "{d}, {a}, {n}"
        for name, kind in (("szext", "u32"), ("szext", "s32"), ("bmsk", "b32"))
        for mode in ("clamp", "wrap")
    },
    **{f"cvt.sat.{to}.{kind}32": "{d}, {a}" for to in ("u8", "s8", "u16", "s16", "u32", "s32") for kind in "us"},
    "and.pred": "{p}, {p}, {q}",
    "not.pred": "{p}, {q}",
}


# what one thread computes


def run_thread(lines: list[str], thread: int, open_word: int) -> dict[str, int]:
    """The registers of one thread at the end; those of predicates are 0 or 1."""
    places = {line[:-1]: n for n, line in enumerate(lines) if line.endswith(":")}
    registers: dict[str, int] = {"%tid.x": thread, "%laneid": thread, "[open_word]": open_word}
    pc = steps = 0
    while pc < len(lines):
        line, pc = lines[pc], pc + 1
        steps += 1
        assert steps < _MOST_STEPS
        if line.endswith(":"):
            continue
        guard = re.match(r"@(!?)(%p\d+) (.*)", line)
        if guard is not None:
            if registers[guard[2]] == (guard[1] == "!"):
                continue
            line = guard[3]
        mnemonic, _, operands = line.rstrip(";").partition(" ")
        parts = operands.split(", ")
        if mnemonic == "bra":
            pc = places[parts[0]]
            continue
        values = [registers[p] if p in registers else int(p) for p in parts[1:]]
        words = mnemonic.split(".")
        if "cc" in words or words[0] in ("addc", "subc", "madc"):
            total = _with_carry(words, values, registers.get("carry", 0))
            registers[parts[0]] = total % (1 << 32)
            registers["carry"] = int(not 0 <= total < 1 << 32) if "cc" in words else registers["carry"]
            continue
        registers[parts[0]] = computed(words, values)
    return registers


def _with_carry(words: list[str], v: list[int], carry: int) -> int:
    """The whole sum or difference, of which the carry is what does not fit into 32 bits."""
    carry = carry if words[0][-1] == "c" else 0
    if words[0][:3] == "mad":
        a, b = (_signed(x, 32) if words[-1] == "s32" else x for x in v[:2])
        return (a * b // (1 << 32) if "hi" in words else a * b) % (1 << 32) + v[2] % (1 << 32) + carry
    a, b = (x % (1 << 32) for x in v)
    return a - b - carry if words[0][:3] == "sub" else a + b + carry


def computed(words: list[str], v: list[int]) -> int:
    """The result of one instruction, in the width of its register."""
    kind = words[-1]
    width = _width(kind)
    if words[0] == "cvt":
        target = int(words[-2][1:])
        value = v[0] % (1 << width)
        value = _signed(value, width) if kind[0] == "s" else value
        if "sat" in words:  # into a register of 32 bits
            return _clamped(value, target, words[-2][0] == "s") % (1 << 32)
        return value % (1 << target)
    if words[0] == "setp":
        return _compared(words, v, width)
    if words[0] in ("mov", "ld"):
        return v[0]
    a, *rest = (_signed(x, width) for x in v) if kind[0] == "s" and words[0] in _BY_SIGN else v
    result = _RULES[words[0]](words, width, a, *rest)
    return result % (1 << (2 * width if "wide" in words else width))


@cache
def _width(kind: str) -> int:
    return 1 if kind == "pred" else int(re.sub(r"\D", "", kind))


def _signed(value: int, width: int) -> int:
    value %= 1 << width
    return value - (1 << width) if value >= 1 << (width - 1) else value


def _compared(words: list[str], v: list[int], width: int) -> int:
    a, b = (_signed(x, width) for x in v[:2]) if words[-1][0] == "s" else v[:2]
    first = getattr(operator, words[1])(a, b)
    if len(v) == 2:
        return int(first)
    other = bool(v[2])
    return int({"and": first and other, "or": first or other, "xor": first != other}[words[2]])


def _bits(value: int, width: int) -> str:
    return format(value % (1 << width), f"0{width}b")


def _clamped(value: int, width: int, sign: bool) -> int:
    low, high = (-(2 ** (width - 1)), 2 ** (width - 1) - 1) if sign else (0, 2**width - 1)
    return low if value < low else min(value, high)


def _of_24_bits(words: list[str], v: Sequence[int]) -> int:
    a, b = (_signed(x, 24) if words[-1] == "s32" else x % (1 << 24) for x in v[:2])
    return (a * b // (1 << 16) if "hi" in words else a * b) + sum(v[2:])


def _dot_product(words: list[str], a: int, b: int, c: int) -> int:
    for i in range(4):
        x, y = a >> 8 * i & 255, b >> 8 * i & 255
        c += (_signed(x, 8) if words[1] == "s32" else x) * (_signed(y, 8) if words[2] == "s32" else y)
    return c


def _extended(words: list[str], a: int, count: int) -> int:
    """``szext``, as in the PTX ISA."""
    low, too_large = count & 31, count >= 32 and words[1] == "clamp"
    mask = 0 if too_large else -1 << low
    sign = low and not too_large and words[2] == "s32" and a >> (low - 1) & 1
    return (a & ~mask) | (mask if sign else 0)


def _mask(words: list[str], a: int, b: int) -> int:
    """``bmsk``, as in the PTX ISA."""
    first, count = a & 31, b & 31
    clamp = words[1] == "clamp"
    begin = 0 if clamp and a >= 32 else -1 << first
    end = -1 << first + count
    if first + count >= 32 or (clamp and (a >= 32 or b >= 32)):
        end = 0
    elif not count:
        end = -1
    return begin & ~end


def _quotient(a: int, b: int) -> int:
    return abs(a) // abs(b) * (-1 if (a < 0) != (b < 0) else 1)


def _product(words: list[str], width: int, a: int, b: int) -> int:
    return a * b >> width if "hi" in words else a * b


def _field(words: list[str], width: int, a: int, start: int, length: int) -> int:
    """``bfe``, bit by bit as in the PTX ISA."""
    position, count = start & 255, length & 255
    highest = width - 1
    sign = 0
    if words[1][0] == "s" and count:
        sign = a >> min(position + count - 1, highest) & 1
    found = 0
    for i in range(width):
        inside = i < count and position + i <= highest
        found |= (a >> position + i & 1 if inside else sign) << i
    return found


def _insert(width: int, a: int, b: int, start: int, length: int) -> int:
    position, count = start & 255, length & 255
    found = b
    for i in range(count):
        if position + i < width:
            found = found & ~(1 << position + i) | (a >> i & 1) << position + i
    return found


def _permuted(a: int, b: int, selector: int) -> int:
    source = [(b << 32 | a) >> 8 * i & 255 for i in range(8)]
    found = 0
    for i in range(4):
        nibble = selector >> 4 * i & 15
        byte = source[nibble & 7]
        found |= (255 * (byte >> 7) if nibble & 8 else byte) << 8 * i
    return found


def _by_table(width: int, a: int, b: int, c: int, table: int) -> int:
    index = [(a >> i & 1) << 2 | (b >> i & 1) << 1 | c >> i & 1 for i in range(width)]
    return sum((table >> each & 1) << i for i, each in enumerate(index))


def _funnel(words: list[str], a: int, b: int, c: int) -> int:
    amount = c & 31 if "wrap" in words else min(c, 32)
    both = b << 32 | a
    return both << amount >> 32 if words[1] == "l" else both >> amount


def _highest(words: list[str], width: int, a: int) -> int:
    text = _bits(~a if words[1][0] == "s" and a >> (width - 1) & 1 else a, width)
    return width - 1 - text.index("1") if "1" in text else 0xFFFFFFFF


#: Read their operands with a sign where the type has one.
_BY_SIGN = frozenset({"sad", "mul", "min", "max", "div", "rem", "abs", "neg", "sub", "mad"})
_RULES: Mapping[str, Callable[..., int]] = {
    "add": lambda w, n, a, b: _clamped(_signed(a, n) + _signed(b, n), n, sign=True) if "sat" in w else a + b,
    "sub": lambda w, n, a, b: _clamped(a - b, n, sign=True) if "sat" in w else a - b,
    "sad": lambda _w, _n, a, b, c: c + abs(a - b),
    "slct": lambda _w, n, a, b, c: a if _signed(c, n) >= 0 else b,
    "mul24": lambda w, _n, *v: _of_24_bits(w, v),
    "mad24": lambda w, _n, *v: _of_24_bits(w, v),
    "dp4a": lambda w, _n, a, b, c: _dot_product(w, a, b, c),
    "szext": lambda w, _n, a, b: _extended(w, a, b),
    "bmsk": lambda w, _n, a, b: _mask(w, a, b),
    "mul": _product,
    "mad": lambda _w, _n, a, b, c: a * b + c,
    "min": lambda _w, _n, a, b: min(b, a),
    "max": lambda _w, _n, a, b: max(b, a),
    "and": lambda _w, _n, a, b: a & b,
    "or": lambda _w, _n, a, b: a | b,
    "xor": lambda _w, _n, a, b: a ^ b,
    "not": lambda _w, n, a: (1 << n) - 1 - a,
    "neg": lambda _w, _n, a: -a,
    "abs": lambda _w, _n, a: abs(a),
    "div": lambda _w, _n, a, b: _quotient(a, b),
    "rem": lambda _w, _n, a, b: a - b * _quotient(a, b),
    "shl": lambda _w, n, a, b: int((_bits(a, n) + "0" * n)[min(b, n) : min(b, n) + n], 2),
    "shr": lambda w, n, a, b: (_signed(a, n) if w[1][0] == "s" else a) // (1 << min(b, n)),
    "popc": lambda _w, n, a: _bits(a, n).count("1"),
    "clz": lambda _w, n, a: (_bits(a, n) + "1").index("1"),
    "brev": lambda _w, n, a: int(_bits(a, n)[::-1], 2),
    "bfind": _highest,
    "selp": lambda _w, _n, a, b, p: a if p else b,
    "bfe": _field,
    "bfi": lambda _w, n, a, b, c, d: _insert(n, a, b, c, d),
    "prmt": lambda _w, _n, a, b, c: _permuted(a, b, c),
    "lop3": lambda _w, n, a, b, c, t: _by_table(n, a, b, c, t),
    "shf": lambda w, _n, a, b, c: _funnel(w, a, b, c),
}
