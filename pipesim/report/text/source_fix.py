"""A correction as an edit of one line of the author's source, where it maps to one: as a diff, and in the file.

A statement that is added beside one line is a proposal: it is shown, and not written.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from pipesim.bounds import MAX_PTX_BYTES
from pipesim.errors import UsageError
from pipesim.inputs import InputKind, is_quotable, python_folders
from pipesim.model.ops import Engine, Fence, Op, operand
from pipesim.prove.repair.added_line import AddedLine
from pipesim.prove.repair.correction import ChangedToken, Correction
from pipesim.prove.repair.kinds import RepairKind
from pipesim.ptx.source_files import path_of
from pipesim.report.text.words import place

_SOURCE = InputKind("source file", MAX_PTX_BYTES, UsageError, "correct it by hand")
#: One number of the line is another one.
_NUMBERS = frozenset({RepairKind.COUNT, RepairKind.EXPECT, RepairKind.THREADS, RepairKind.DEPTH})
_OF_WARP = re.compile(r"\b(\w+)\.(?:read|write|async_\w+|tma_\w+|mma|work|fence|commit|wait_group|bar_\w+|elect_one)\(")
_COMPARISON = re.compile(r"(?<![<>=!-])([<>])(=?)(?![<>=])")
_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"')
_ARGUMENT = re.compile(r"(?<![=<>!])[=(,{:]\s*(\d+)(?=\s*(?:[),;}]|$))|<(\d+)>")  # also a default or initial value
_SUM = re.compile(r"(?<![\w.])([A-Za-z_]\w*) *([-+]) *(\d{1,9})\b(?![\w.]| *[-+*/%])")  #: of a name and a number
_GROUPS = {0: "cp.async.bulk.{}", 1: "cp.async.{}", 2: "wgmma.{}.sync.aligned"}  #: by engine
_WAY_PAST = re.compile(r"\s*if\s*\(.*\)\s*(continue|break|return)\s*;\s*(//.*)?")  # a statement that is nothing else


@dataclass(frozen=True)
class SourceFix:
    """The line ``number`` of a file, from 1 on, and what it is afterwards; None: it is deleted.

    ``proposed``: a statement is added, whose words or place the author may want otherwise, or CTAs differ.
    """

    path: Path
    number: int
    after: str | None
    proposed: bool = False

    @property
    def texts(self) -> tuple[str, str]:
        """The whole text before and after."""
        before = _SOURCE.read_text(self.path)
        lines = before.splitlines(keepends=True)
        end = lines[self.number - 1][len(lines[self.number - 1].rstrip("\r\n")) :]
        lines[self.number - 1 : self.number] = [] if self.after is None else [self.after + end]
        return before, "".join(lines)

    def diff(self) -> list[str]:
        """The change in the unified format, paths relative to the current folder."""
        name = place(f"{self.path}:{self.number}").rpartition(":")[0]
        before, after = (text.splitlines() for text in self.texts)
        return list(difflib.unified_diff(before, after, f"a/{name}", f"b/{name}", n=2, lineterm=""))


def source_fix(correction: Correction, *, of_some_ctas: bool = False) -> SourceFix | None:
    """The edit of one line, None where it is not one: a number that is not written in it, or several times.

    Proved for some CTAs alone it is a proposal, unless it deletes a line that leads past an arrive.
    """
    fix = _edit(correction)
    return fix and replace(fix, proposed=fix.proposed or (of_some_ctas and fix.after is not None))


def _edit(correction: Correction) -> SourceFix | None:
    if correction.token is not None:
        fixes = (_of_token(correction.token, line) for line in correction.token.lines)
        if (fix := next(filter(None, fixes), None)) is not None or correction.repair.kind not in _NUMBERS:
            return fix
    found = _lines_of(correction.source or (correction.added.line if correction.added is not None else ""))
    if found is None:
        return None
    path, lines, number = found
    if not correction.source and correction.added is not None:
        return _proposal(path, lines, number, correction.added, all_threads="__syncthreads()" in correction.said)
    text, repair = lines[number - 1], correction.repair
    if repair.kind in _NUMBERS:
        code = re.split(r"//|#", text, maxsplit=1)[0]
        whole = {found.start(found.lastindex or 0) for found in _ARGUMENT.finditer(code)}  # no index, no part of a sum
        every = _numbers(str(repair.was), code)
        every = [found for found in every if repair.kind is RepairKind.DEPTH or found.start() in whole]
        if len(every) != 1:
            new = _of_constant(lines, code, repair.was, repair.value)
            return SourceFix(path, number, new + text[len(code) :]) if new else None
        return SourceFix(path, number, f"{text[: every[0].start()]}{repair.value}{text[every[0].end() :]}")
    if repair.kind is RepairKind.NOT_PAST and _WAY_PAST.fullmatch(text):
        return SourceFix(path, number, None)
    return None


def _numbers(was: str, code: str) -> list[re.Match[str]]:
    """Where the number is written, which is not that of an operand in inline assembly: ``%3``."""
    texts = [each.span() for each in _TEXT.finditer(code)]
    every = re.finditer(rf"(?<![\w.]){was}(?![\w.])", code)
    operands = {at for first, end in texts for at in range(first, end) if code[at - 1] == "%"}
    return [each for each in every if each.start() not in operands]


def _of_constant(lines: list[str], code: str, was: int, value: int) -> str:
    """The code with another distance from a constant that the file defines once: ``kStages - 2`` for ``kStages - 1``;
    "" if not one such sum is the number that it was.
    """
    found = []
    for each in _SUM.finditer(code):
        defined = re.compile(rf"(?<![\w.]){each[1]} *= *(\d{{1,9}}) *[,;]")
        said = [int(known[1]) for line in lines for known in defined.finditer(line)]
        alone = not code[: each.start()].rstrip().endswith(tuple("-+*/%"))
        if alone and len(said) == 1 and said[0] + int(each[2] + each[3]) == was:
            found.append((each, value - said[0]))
    if len(found) != 1:
        return ""
    at, far = found[0]
    rest = f" {'-' if far < 0 else '+'} {abs(far)}" if far else ""
    return f"{code[: at.start()]}{at[1]}{rest}{code[at.end() :]}"


def _of_token(token: ChangedToken, source: str) -> SourceFix | None:
    """The line with the number, or with the other comparison of its one comparison, where it has it once.

    Where a line of Python has it several times, that of the expression that begins at the column which ``source`` has.
    """
    source, _, column = source.partition(",")
    found = _lines_of(source)
    if found is None:
        return None
    path, lines, number = found
    code = re.split(r"//|#", text := lines[number - 1], maxsplit=1)[0]
    every = _numbers(token.was, code) if token.was else list(_COMPARISON.finditer(code))
    if path.suffix == ".py" and len(every) > 1 and column:
        every = [each for each in every if each.start() >= int(column) - 1][:1]
    if len(every) != 1:
        return None

    def now(found: re.Match[str]) -> str:
        return token.now or (found[1] if found[2] else f"{found[1]}=")

    return SourceFix(path, number, f"{text[: every[0].start()]}{now(every[0])}{text[every[0].end() :]}")


def _lines_of(source: str) -> tuple[Path, list[str], int] | None:
    """The file of a place, its lines, and the number of the line; None where it cannot be read."""
    name, _, number = source.rpartition(":")
    path = Path(path_of(name)) if name else None
    if path is None or not is_quotable(path, *python_folders()) or path.suffix == ".ptx" or not number.isdecimal():
        return None
    lines = _SOURCE.read_text(path).splitlines()
    return (path, lines, int(number)) if 0 < int(number) <= len(lines) else None


def _proposal(path: Path, lines: list[str], number: int, added: AddedLine, *, all_threads: bool) -> SourceFix | None:
    """The statement before the line, or after the statement that begins there; in a block that it opens, first."""
    python, last = path.suffix == ".py", number
    while not added.before and last < len(lines) and not _closed("".join(lines[number - 1 : last])):
        last += 1
    text = lines[last - 1]
    opens = not added.before and text.rstrip().endswith((":", "{"))
    inside = next((line for line in lines[last:] if line.strip()), "") if opens else lines[number - 1]
    statement = _in_python(added, lines[number - 1]) if python else _in_cuda(added)
    statement = "__syncthreads();" if all_threads and not python else statement
    if not statement:
        return None
    new = f"{inside[: len(inside) - len(inside.lstrip())]}{statement}  {'#' if python else '//'} proposed by pipesim"
    return SourceFix(path, last, f"{new}\n{text}" if added.before else f"{text}\n{new}", proposed=True)


def _closed(text: str) -> bool:
    """Whether all brackets are closed, apart from that of a block."""
    bare = _TEXT.sub("", text)
    return bare.count("(") <= bare.count(")") and bare.count("[") <= bare.count("]")


def _in_python(added: AddedLine, near: str) -> str:
    """A call of a warp, which is called as in the line beside it; "" for what is about a stage."""
    op = added.op
    found = _OF_WARP.search(near)
    warp = found[1] if found is not None else "w"
    match op[0]:
        case Op.FENCE:
            return f"{warp}.fence(Fence.{Fence(operand(op, 'fence')).name})"
        case Op.COMMIT if operand(op, "barrier") < 0:
            return f"{warp}.commit(Engine.{Engine(operand(op, 'engine')).name})"
        case Op.WAIT_GROUP:
            left = f", {operand(op, 'groups')}" if operand(op, "groups") else ""
            return f"{warp}.wait_group(Engine.{Engine(operand(op, 'engine')).name}{left})"
        case Op.BAR_SYNC:
            return f"{warp}.bar_sync({added.number}, {operand(op, 'threads')})"
    return ""


def _in_cuda(added: AddedLine) -> str:
    """A statement in PTX; "" for what has another form in each kernel."""
    op = added.op
    match op[0]:
        case Op.FENCE if operand(op, "fence") == Fence.PROXY_ASYNC:
            text = "fence.proxy.async;"
        case Op.COMMIT if operand(op, "engine") in _GROUPS and operand(op, "barrier") < 0:
            text = _GROUPS[operand(op, "engine")].format("commit_group") + ";"
        case Op.WAIT_GROUP if operand(op, "engine") in _GROUPS:
            text = f"{_GROUPS[operand(op, 'engine')].format('wait_group')} {operand(op, 'groups')};"
        case Op.BAR_SYNC:
            text = f"bar.sync {added.number}, {operand(op, 'threads')};"
        case _:
            return ""
    return f'asm volatile("{text}" ::: "memory");'


def writable(fixes: Iterable[SourceFix]) -> list[SourceFix]:
    """Those that are no proposals, each line once. UsageError for a file that is not below the current folder."""
    found = list(dict.fromkeys(fix for fix in fixes if not fix.proposed))
    for fix in found:
        inside = fix.path.resolve().is_relative_to(Path.cwd().resolve())
        if not inside or "site-packages" in fix.path.parts:
            raise UsageError(
                f"{fix.path} is not written",
                cause="it is not below the current folder, or is a library's",
                correction="apply the diff by hand",
            )
    return found
