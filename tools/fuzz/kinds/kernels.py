"""PTX files (docs/reading-ptx.md): kernels of compilers and small ones, with mutated lines, words and bytes.

A verdict is about the flat program that the reader makes of the file: the naive search follows every schedule of that.
"""

import json
import re
from functools import cache
from itertools import pairwise
from pathlib import Path
from random import Random

from pipesim.errors import PipesimError
from pipesim.targets import find
from tests.support.hostile_names import HOSTILE
from tools.fuzz.cases import Answer, Case, Confirm
from tools.fuzz.kinds.programs import report_of, searched
from tools.fuzz.mutate import damaged
from tools.fuzz.small_kernels import SMALL_KERNELS, small_launch

FILE, LAUNCH = "k.ptx", "k.json"
_KERNELS = Path(__file__).resolve().parents[3] / "tests" / "ptx" / "kernels"
_LINES = (
    "", ";", "{", "}", "{ {", "/*", "*/", "//", '"', "ret;", "exit;", "trap;", "bra made;", "bra nowhere;", "made:",
    "here: bra here;", "here: add.u32 %r10, %r10, 1; bra here;", "here: bra.uni there; there: bra here;",
    "here: mbarrier.try_wait.parity.shared::cta.b64 %p9, [%r3], 0; @!%p9 bra here; @%p9 bra here;",
    "bar.sync 0;", "bar.sync 15, 64;", "bar.sync 1, 4096;", "bar.arrive 1, 64;", "barrier.cluster.arrive.aligned;",
    "barrier.cluster.wait.aligned;", "mbarrier.inval.shared::cta.b64 [%r3];", "fence.proxy.async;",
    "mbarrier.init.shared::cta.b64 [%r3], 0;", "mbarrier.init.shared::cta.b64 [%r3+4], 1;",
    "mbarrier.arrive.shared::cta.b64 _, [%r3], 1048576;", "mbarrier.arrive.shared::cta.b64 _, [0];",
    "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r3], 1048575;", "mbarrier.arrive.shared::cta.b64 _, [%r0];",
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd1], 4294967295, [%r3];",
    "cp.async.bulk.commit_group;", "cp.async.bulk.wait_group 0;", "cp.async.bulk.wait_group 99999999999;",
    "setmaxnreg.inc.sync.aligned.u32 232;", "setmaxnreg.dec.sync.aligned.u32 7;", "wgmma.fence.sync.aligned;",
    "wgmma.wait_group.sync.aligned 0;", "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [tile], 512;",
    "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r10, 512;", "call next;", "call.uni (got), next, (given);",
    "call.uni %rd1, (%r0);", "call vprintf, (%r0);", ".reg .b32 %r<9999999>;", ".reg .b32 %r<99999999999999999999>;",
    ".reg .b32 %r<0>;", ".reg .b32 %q<16777216>;", ".shared .b8 big[1099511627776];", ".shared .b8 big[2147483647];",
    ".shared .align 1073741824 .b8 big[4];", ".shared .align 0 .b8 big[4];", ".shared .b8 big[-1];",
    ".local .b8 deep[4294967296];", ".shared .b8 many[65536][65536][65536];", ".shared .b32 x = {1, 2, 3};",
    ".global .b32 x[4] = {1, 2, {3}};", ".param .b8 p[99999999];", ".loc 1 999999999 1", ".loc 1 1",
    ".branchtargets made, full;", ".pragma \"nounroll\";", ".unknown 3;", "@%p0 @%p1 bra made;", "@%q bra made;",
    "mov.u32 %r10, %r10;", "mov.u32 %r10, %clock;", "ld.global.u32 %r10, [%rd1];",
    "atom.global.add.u32 %r10, [%rd1], 1;",
    "atom.shared.add.u32 %r10, [tile], 1;", "shfl.sync.idx.b32 %r10, %r10, 0, 31, -1;", "elect.sync _|%p9, -1;",
    "vote.sync.any.pred %p9, %p9, -1;", "match.all.sync.b32 %r10|%p9, %r10, -1;", "div.u32 %r10, %r10, 0;",
    "rem.s32 %r10, %r10, 0;", "shl.b32 %r10, %r10, 4294967295;", "mul.wide.u32 %rd2, %r10, -1;", "brx.idx %r10, made;",
    "nanosleep.u32 4294967295;", "griddepcontrol.wait;", "add.u32 %r10, %r10, 1;", "prmt.b32 %r10, %r10, %r10, 0x7531;",
    "mov.b64 {%r10, %r11}, %rd1;", "st.shared.v4.u32 [tile+1020], {%r0, %r1, %r2, %r3};",
    "st.shared.u32 [tile+9999999], %r0;",
)  # fmt: skip
_NUMBERS = (
    "0", "1", "-1", "2", "7", "31", "32", "33", "64", "255", "1023", "4096", "65536", "2147483647", "2147483648",
    "4294967295", "4294967296", "9223372036854775807", "18446744073709551615", "18446744073709551616", "0x", "0b2",
    "09", "1e400", "0f7FC00000", "0fZ", "0d7FF0000000000000", "9" * 300, "9" * 5_000, "1 << 63", "1/0", "WARP_SZ",
    "-9223372036854775808", "(" * 150 + "1" + ")" * 150, "1.5", "~0", "!1",
)  # fmt: skip
_OPERANDS = (
    "%r0", "%r10", "%rd1", "%p0", "%p9", "%r99", "%nothing", "tile", "bars", "laps", "made", "over", "_", "%tid.x",
    "%laneid", "%warpid", "%ctaid.x", "%nctaid.y", "%cluster_ctarank", "%clock64", "%tid.q", "{%r0, %r1}", "{}",
    "[%r3]", "[%r3+8]", "[%r3+-8]", "[tile]", "[laps]", "[%rd1]", "[]", "[[tile]]", "%r0|%p0", "-%r0", "!%p0", "a b",
)  # fmt: skip
_MODIFIERS = (
    ".u32", ".s32", ".b32", ".u64", ".b64", ".b128", ".f32", ".f16x2", ".pred", ".v2", ".v4", ".v8", ".sync",
    ".aligned", ".uni", ".parity", ".shared", ".shared::cta", ".shared::cluster", ".global", ".local", ".param",
    ".const", ".release", ".acquire", ".relaxed", ".cta", ".cluster", ".gpu", ".sys", ".wide", ".hi", ".lo", ".cc",
    ".noComplete", ".expect_tx", ".multicast::cluster", ".cta_group::2", ".x128", ".unknown", ".", "..", ".é",
)  # fmt: skip
_OF_LINES = (
    "delete", "delete", "twice", "swap", "move", "line", "line", "line", "line", "block", "many", "recursion", "cut",
)  # fmt: skip
#: What is replaced, and by what; without a choice, a mutation that needs the line.
_OF_WORDS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (r"(?<![\w%$.])\d\w*|(?<=\+)\d+|(?<=<)\d+", _NUMBERS), (r"(?<=[ ,])[%\w\[\]+{}]+(?=[,;])", _OPERANDS),
    (r"\.[a-z]\w*(?:::\w+)?", ("", "", *_MODIFIERS)), (r"\.[a-z]\w*(?:::\w+)?", ("", "", *_MODIFIERS)),
    (r"\$?\w+(?=:(?!:))|(?<=bra )\$?\w+", ("nowhere", "made", "x")),
    (r"[A-Za-z_$]\w*", ("x", "kernel", "bra", "reg", "_", "%r0")),
    (r"[A-Za-z_$]\w*|\d+", tuple(HOSTILE.values())), ("", ()), ("", ()), ("", ()),
)  # fmt: skip
_NESTS = (("{", "}"), ("(", ")"), ("[", "]"), ("-", ""), ("!", ""))
_COMMANDS = (
    "check k.ptx --quick --json --max-states 1000 --time-limit 0.2",
    "check k.ptx --quick --json --max-states 1000 --time-limit 0.2",
    "check k.ptx --quick --json --max-states 1000 --time-limit 0.2",
    "check k.ptx --json --max-states 300 --time-limit 0.2", "check k.ptx --quick --max-states 300 --time-limit 0.2",
    "check k.ptx --quick --json --set 0=2 --max-states 1000 --time-limit 0.2",
    "check k.ptx --quick --json --set laps=4 --max-states 1000 --time-limit 0.2",
    "run k.ptx --json", "run k.ptx --max-steps 5000", "show k.ptx --json", "table k.ptx --json",
    "export k.ptx --to promela --json", "run k.ptx --save-program again.json --save-trace t.parquet",
)  # fmt: skip
_LONG = 400_000  #: characters of a text whose lines were multiplied


def make(rng: Random) -> Case:
    """A kernel with one to four mutations."""
    text, launch = seed(rng)
    lines = text.splitlines()
    said = [_mutate(lines, rng) for _ in range(rng.choice((1, 1, 2, 2, 4)))]
    data = ("\n".join(lines) + "\n").encode("utf-8", "surrogatepass")
    if rng.random() < 0.05:
        data, words = damaged(data, rng)
        said.append(words)
    return case(data, launch, ", ".join(said), rng)


def case(text: bytes, launch: bytes, said: str, rng: Random) -> Case:
    """A command on a kernel and its launch."""
    line = tuple(rng.choice(_COMMANDS).split())
    return Case(said, {FILE: text, LAUNCH: launch}, line, confirm(line), ("again.json", "t.parquet"))


def seed(rng: Random) -> tuple[str, bytes]:
    """A right kernel and its launch, most often a small one."""
    if rng.random() < 0.6:
        laps = rng.choice((0, 1, 2, 2, 3))
        return rng.choice(list(SMALL_KERNELS.values())), json.dumps(small_launch(laps)).encode()
    return rng.choice(_compiled())


@cache
def _compiled() -> tuple[tuple[str, bytes], ...]:
    """The kernels of compilers that are in the tests, without what is only for a debugger, and their launches."""
    found = []
    for path in sorted(_KERNELS.glob("*.ptx")):
        text = re.sub(r"\n\t\.section[^}]*\}", "", path.read_text(encoding="utf-8"))
        found.append((text, path.with_suffix(".json").read_bytes()))
    return tuple(found)


def _mutate(lines: list[str], rng: Random) -> str:
    """Make one mutation in place; what it is."""
    at = rng.randrange(len(lines)) if lines else 0
    if rng.random() < 0.5:
        return _mutate_word(lines, at, rng)
    line = lines[at] if lines else ""
    how = rng.choice(_OF_LINES)
    match how:
        case "delete":
            del lines[at : at + rng.choice((1, 1, 1, 3, 20))]
        case "twice":
            lines.insert(at, line)
        case "swap" if lines:
            other = rng.randrange(len(lines))
            lines[at], lines[other] = lines[other], lines[at]
        case "move":
            lines.insert(rng.randrange(len(lines) + 1), lines.pop(at) if lines else "")
        case "line":
            new = rng.choice(_LINES)
            lines.insert(at, new)
            return f"line {new!r} at {at + 1}"
        case "block":
            end = min(len(lines), at + rng.choice((1, 5, 30)))
            lines[at:at] = lines[rng.randrange(end + 1) : end]
        case "many":
            return _many(lines, at, rng)
        case "recursion":
            names = rng.choice((("f", "f"), ("f", "g"), ("kernel", "f")))
            made = [f".func {a}() {{ call.uni {b}; ret; }}" for a, b in zip(names, names[::-1], strict=True)]
            lines[3:3] = made[: rng.choice((1, 2))]
            lines.insert(min(len(lines), at + 2), f"call.uni {names[0]};")
        case _:
            del lines[at:]
    return how


def _mutate_word(lines: list[str], at: int, rng: Random) -> str:
    """Make one mutation within a line."""
    line = lines[at] if lines else ""
    pattern, choices = rng.choice(_OF_WORDS)
    if choices:
        return _replaced(lines, at, pattern, rng.choice(choices), rng)
    how = rng.choice(("register", "opcode", "guard", "unclosed", "deep"))
    match how:
        case "register":
            names = re.findall(r"%\w+|\$?\b[A-Za-z_]\w+", line) or ["x"]
            return _replaced(lines, at, r"%\w+|\$\w+", rng.choice(names), rng)
        case "opcode":
            names = re.findall(r"\b[a-z]\w+", rng.choice(lines) if lines else "") or ["x"]
            return _replaced(lines, at, r"\b[a-z]\w*(?=[. ])", names[0], rng)
        case "guard":
            lines[at : at + 1] = [rng.choice(("@%p0 ", "@!%p9 ", "@%p99 ", "@ ", "@!! %p0 ")) + line.strip()]
        case "unclosed":
            lines[at : at + 1] = [re.sub(r"[;}\])\"]", "", line, count=1) + rng.choice(("", "/* ", '"', "{", "("))]
        case _:
            depth, (left, right) = rng.choice((3, 100, 200, 20_000)), rng.choice(_NESTS)
            lines[at : at + 1] = [left * depth + line + right * depth]
    return how


def _many(lines: list[str], at: int, rng: Random) -> str:
    """Put very many lines at a place: registers, labels, barriers, branches, calls, source lines, functions."""
    row = rng.choice(
        (".reg .b32 %m{0};", "m{0}:", "m{0}: bra m{1};", "mbarrier.init.shared::cta.b64 [{0}], 1;", "bra m{0};",
         ".shared .b8 s{0}[64];", ".loc 1 {0} 1", ".loc 1 {0} 1, function_name x, inlined_at 1 {1} 1", "bar.sync 0;",
         "@%p{0} bra over;", "@%p9 mov.u32 %r10, {0};", "st.shared.u32 [tile+{0}], %r10;", "add.u32 %r10, %r10, {0};",
         "setp.eq.u32 %p9, %r10, {0}; @%p9 bra over;", "ld.global.u32 %r10, [%rd1+{0}];", "{{ .reg .b32 %m; }}",
         "call.uni f{0};", "mov.u32 %r10, tile; // {0}", "/* {0} */")
    )  # fmt: skip
    many = min(rng.choice((30, 1_000, 10_000)), _LONG // len(row))
    order = list(range(many))
    if rng.random() < 0.3:
        order.reverse()
    lines[at:at] = [row.format(n, n + 1) for n in order]
    return f"{many:,} of {row!r} at {at + 1}"


def _replaced(lines: list[str], at: int, pattern: str, text: str, rng: Random) -> str:
    """One of a pattern's matches replaced, in the first line from a place on that has one."""
    for number in [*range(at, len(lines)), *range(at)]:
        found = list(re.finditer(pattern, lines[number]))
        if found:
            match = rng.choice(found)
            lines[number] = lines[number][: match.start()] + text + lines[number][match.end() :]
            return f"{match[0][:40]!r} is {text[:40]!r} in line {number + 1}"
    return "nothing to replace"


def confirm(line: tuple[str, ...]) -> Confirm:
    """What confirms a verdict on the kernel."""
    sets = tuple(each for word, each in pairwise(line) if word == "--set")

    def confirmed(answer: Answer) -> str | None:
        if report_of(answer) is None:
            return None
        try:
            program = find(FILE, sets=sets).build({})
        except PipesimError as error:
            return f"an answer on a kernel that is refused: {error.fact}"
        return searched(answer, program)

    return confirmed
