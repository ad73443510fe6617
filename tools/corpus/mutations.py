"""Mistakes in the synchronisation of a kernel's PTX: one line dropped or changed."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

_GUARD = r"(?P<guard>@!?[\w%$]+\s+)?"
_DROPPED = {
    "arrive": r"mbarrier\.arrive(?!\.expect_tx)[\w.:]*\s",
    "expect": r"mbarrier\.(arrive\.)?expect_tx[\w.:]*\s",
    "commit": r"(tcgen05\.commit|wgmma\.commit_group|cp\.async\.(bulk\.)?commit_group)",
    "wait_group": r"(wgmma|cp\.async\.bulk|cp\.async)\.wait_(group|all)",
    "copy": r"cp\.async\.bulk\.[\w.:]*mbarrier",
    "fence": r"fence\.",
    "product fence": r"wgmma\.fence",
    "barrier": r"(bar|barrier)\.(cta\.)?(sync|arrive)",
    "cluster": r"barrier\.cluster\.",
    "tensor_wait": r"tcgen05\.wait",
}
_TRY = re.compile(
    rf"^\s*{_GUARD}(?P<op>mbarrier\.(?:try|test)_wait[\w.:]*)\s+(?P<p>[\w%$]+)\s*,\s*(?P<at>\[[^\]]*\])\s*,"
    r"\s*(?P<parity>[\w%$]+)(?P<rest>[^;]*);"
)
_INIT = re.compile(rf"^\s*{_GUARD}(?P<op>mbarrier\.init[\w.:]*)\s+(?P<at>\[[^\]]*\])\s*,\s*(?P<count>[\w%$]+)\s*;")
_EXPECT = re.compile(
    rf"^\s*{_GUARD}(?P<op>mbarrier\.(?:arrive\.)?expect_tx[\w.:]*)\s+(?P<to>_\s*,|[\w%$]+\s*,)?\s*(?P<at>\[[^\]]*\])\s*,"
    r"\s*(?P<bytes>[\w%$]+)\s*;"
)


@dataclass(frozen=True)
class Mutant:
    """What was changed in a text, which line, and what is there instead."""

    kind: str
    line: int
    instead: str
    lines: Sequence[str] = field(repr=False)

    @property
    def text(self) -> str:
        """The changed text."""
        return "\n".join((*self.lines[: self.line - 1], self.instead, *self.lines[self.line :]))


def mutants(text: str) -> Iterator[Mutant]:
    """Every mutant of a PTX text, in the order of its lines."""
    lines = text.split("\n")
    parities, carried = _parities(lines)
    for number, line in enumerate(lines, 1):
        for kind, changed in (*_changes(line), *_phase_changes(line, parities, carried), *_boundary(line, lines)):
            yield Mutant(kind, number, changed, lines)


def _changes(line: str) -> Iterator[tuple[str, str]]:
    for kind, pattern in _DROPPED.items():
        if re.match(rf"^\s*{_GUARD}{pattern}", line) and line.rstrip().endswith(";"):
            yield f"{kind} dropped", "// dropped"
    if found := _TRY.match(line):
        g, op, p, at, parity, rest = (found[n] or "" for n in ("guard", "op", "p", "at", "parity", "rest"))
        yield "wait dropped", f"{g}setp.eq.u32 {p}, 0, 0;"
        if ".parity" in op:
            flipped = f"{{ .reg .b32 mutant; xor.b32 mutant, {parity}, 1; {g}{op} {p}, {at}, mutant{rest}; }}"
            yield "wrong parity", flipped
    if found := _INIT.match(line):
        g, op, at, count = (found[n] or "" for n in ("guard", "op", "at", "count"))
        yield "count + 1", f"{{ .reg .b32 mutant; add.u32 mutant, {count}, 1; {g}{op} {at}, mutant; }}"
    if found := _EXPECT.match(line):
        g, op, to, at, nbytes = (found[n] or "" for n in ("guard", "op", "to", "at", "bytes"))
        yield "bytes + 128", f"{{ .reg .b32 mutant; add.u32 mutant, {nbytes}, 128; {g}{op} {to} {at}, mutant; }}"


# mistakes with phases, stages and roles

_DEFINES = re.compile(
    rf"^(?P<head>\s*{_GUARD})(?P<op>mov|xor|and|selp)\.(?P<type>[bsu]32)\s+(?P<to>[\w%$]+)\s*,\s*(?P<from>[^;]*);"
)
_COMPARES = re.compile(
    r"^(?P<head>\s*setp\.(?:eq|ne|lt|le|gt|ge)\.[bsu]32\s+(?P<p>[\w%$]+)\s*,\s*(?P<r>[\w%$]+)\s*,\s*)(?P<c>\d+)\s*;"
)
_MOST_STAGES, _WARP, _MOST_THREADS = 16, 32, 1024
_DEEP = 4  #: definitions back from a wait


def _parities(lines: Sequence[str]) -> tuple[frozenset[str], Mapping[str, str]]:
    """Registers that become the parity of a wait, and the constant that each of them begins with."""
    sources: dict[str, set[str]] = defaultdict(set)
    begins: dict[str, str] = {}
    found: set[str] = set()
    for line in lines:
        if tried := _TRY.match(line):
            found.add(tried["parity"])
        elif defined := _DEFINES.match(line):
            values = [each.strip() for each in defined["from"].split(",")]
            sources[defined["to"]] |= {each for each in values if each.startswith("%")}
            if defined["op"] == "mov" and values[0].isdecimal():
                begins.setdefault(defined["to"], values[0])
    for _ in range(_DEEP):
        found |= {source for register in found for source in sources[register]}
    return frozenset(found), {register: value for register, value in begins.items() if register in found}


def _phase_changes(line: str, parities: frozenset[str], carried: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The flip left out or made at every stage, and a phase or stage that begins again in each iteration."""
    if not (found := _DEFINES.match(line)) or found["to"] not in parities:
        return
    head, kind, to = found["head"], found["type"], found["to"]
    first, *rest = (each.strip() for each in found["from"].split(","))
    if found["op"] == "xor":
        yield "flip dropped", f"{head}mov.{kind} {to}, {first};"
        if rest != ["1"]:
            yield "flip at every stage", f"{head}xor.{kind} {to}, {first}, 1;"
    if found["op"] == "and" and rest == ["1"]:
        yield "flip dropped", f"{head}mov.{kind} {to}, 0;"
        yield (
            "flip one later",
            f"{{ .reg .b32 mutant; add.u32 mutant, {first}, 1; {head.strip()} and.b32 {to}, mutant, 1; }}",
        )
    if found["op"] == "mov" and first.startswith("%") and to in carried:
        yield "phase restarted", f"{head}mov.{kind} {to}, {carried[to]};"


def _boundary(line: str, lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The ring wraps one stage too early or too late; a role has a warp fewer or more."""
    if not (found := _COMPARES.match(line)):
        return
    limit = int(found["c"])
    if 1 < limit < _MOST_STAGES and any(f", {found['p']};" in other and "selp" in other for other in lines):
        yield "wrap one stage early", f"{found['head']}{limit - 1};"
        yield "wrap one stage late", f"{found['head']}{limit + 1};"
    threads = re.compile(rf"^\s*mov\.u32\s+{re.escape(found['r'])}\s*,\s*%tid\.x;")
    if limit and limit % _WARP == 0 and limit < _MOST_THREADS and any(map(threads.match, lines)):
        yield "role one warp fewer", f"{found['head']}{limit - _WARP};"
        yield "role one warp more", f"{found['head']}{limit + _WARP};"
