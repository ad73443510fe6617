"""A correction as an edit of one line of the author's source, where it maps to one: as a diff, and in the file.

What was proved is a change of the program. An edit that may say more (a statement that is added beside one line, an
argument of a call, a condition of several parts) is a proposal: it is shown, and not written.
"""

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from pipesim.bounds import MAX_PTX_BYTES
from pipesim.errors import UsageError
from pipesim.inputs import InputKind, is_quotable, python_folders
from pipesim.model.ops import Engine, Fence, Op, Scope, operand, scope_of
from pipesim.prove.repair.correction import OTHER_PARITY, ChangedToken, Correction
from pipesim.prove.repair.kinds import RepairKind
from pipesim.prove.repair.wording.added_line import AddedLine
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
_WAY_PAST = re.compile(r"(continue|break|return)\s*;\s*(//.*)?")
_CONDITION = re.compile(r"(\s*)if\s*(\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))\s*(.*)")
_CALLED = re.compile(r"(\w+)\s*\(([^(){};]*)\)\s*\{")  #: the head of a function, or of a statement
_WHOLE_NAME = re.compile(r"[(,]\s*([A-Za-z_]\w*)\s*(?=[,)])")  #: an argument that is a name
_GIVEN = re.compile(r"(?:[^,()]|\((?:[^()]|\([^()]*\))*\))+")  #: an argument
_WAIT = re.compile(r"\s*[][\w.>:-]*wait\w*\((.*)\)\s*;\s*(?://.*)?")  #: a statement that is nothing else
_ASSIGNED = re.compile(r"(\s*)([\w\[\].>() +*-]+?)\s*=\s*([^=].*);\s*(?://.*)?")


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
        if correction.call and (fix := _of_argument(lines, number, correction.call, repair.was, repair.value)):
            return fix
        code = re.split(r"//|#", text, maxsplit=1)[0]
        whole = {found.start(found.lastindex or 0) for found in _ARGUMENT.finditer(code)}  # no index, no part of a sum
        every = _numbers(str(repair.was), code)
        every = [found for found in every if repair.kind is RepairKind.DEPTH or found.start() in whole]
        if len(every) != 1:
            new = _of_constant(lines, code, repair.was, repair.value)
            return SourceFix(path, number, new + text[len(code) :]) if new else None
        return SourceFix(path, number, f"{text[: every[0].start()]}{repair.value}{text[every[0].end() :]}")
    fix = _without_condition(path, lines, number) if repair.kind is RepairKind.NOT_PAST else None
    return fix and replace(fix, proposed=fix.proposed or repair.value > 0)  # then threads do more than they did


def _without_condition(path: Path, lines: list[str], number: int) -> SourceFix | None:
    """Without the ``if`` that leads past something: the statement where it leaves, else its condition, if no ``else``
    follows. A condition of several parts is several branches, of which one was left out.
    """
    found = _CONDITION.fullmatch(lines[number - 1])
    if found is None or path.suffix == ".py":
        return None
    proposed, rest = any(sign in found[2] for sign in ("&&", "||", "?")), found[3]
    if _WAY_PAST.fullmatch(rest):
        return SourceFix(path, number, None, proposed=proposed)
    if not _end_of_if(lines, number, rest):
        return None
    bare = not rest or rest.startswith("//")
    return SourceFix(path, number, None if bare else found[1] + rest, proposed=proposed)


def _end_of_if(lines: list[str], number: int, rest: str) -> int:
    """The line in which the statement of an ``if`` ends, after its condition ``rest``; 0 before an ``else``."""
    code = re.sub(r"//[^\n]*", "", _TEXT.sub("0", "\n".join((rest, *lines[number:]))))
    depth = 0
    for at, each in enumerate(code):
        depth += (each in "({[") - (each in ")}]")
        if depth <= 0 and each in ";}":
            return 0 if re.match(r"\s*(else\b|$)", code[at + 1 :]) else number + code[:at].count("\n")
    return 0


def _of_argument(lines: list[str], number: int, call: str, was: int, value: int) -> SourceFix | None:
    """Another number in the call of the function of a line, where a parameter of that is what the line gives on."""
    heads = [each for each in _CALLED.finditer("\n".join(lines[:number])) if each[1] not in ("if", "while", "switch")]
    found = _lines_of(call)
    if not heads or found is None:
        return None
    path, outer, at = found
    given = re.search(rf"\b{heads[-1][1]}\s*(?:<[^()]*>)?\(((?:[^()]|\([^()]*\))*)\)", text := outer[at - 1])
    if given is None:
        return None
    names = [each.split()[-1].lstrip("*&") for each in heads[-1][2].split(",") if each.strip()]
    passed = {each[1] for each in _WHOLE_NAME.finditer(lines[number - 1])}
    pairs = zip(_GIVEN.finditer(given[1]), names, strict=False)
    mine = [each for each, name in pairs if each[0].strip() == str(was) and name in passed]
    if len(mine) != 1:
        return None
    first, end = (given.start(1) + each for each in mine[0].span())
    return SourceFix(path, at, f"{text[:first]}{mine[0][0].replace(str(was), str(value))}{text[end:]}", proposed=True)


def _of_parity(path: Path, number: int, text: str) -> SourceFix | None:
    """The line with the other parity as the last argument of the wait that it is."""
    found = _WAIT.fullmatch(text)
    given = list(_GIVEN.finditer(found[1])) if found is not None else []
    if found is None or not given:
        return None
    was = given[-1][0].strip()
    opposite = {"0": "1", "1": "0"}.get(was) or (was[:-3].rstrip() if was.endswith("^ 1") else "")
    now = opposite or (f"{was} ^ 1" if re.fullmatch(r"[\w\s%/*+()-]*", was) else f"({was}) ^ 1")
    first = found.end(1) - len(given[-1][0].lstrip())
    return SourceFix(path, number, f"{text[:first]}{now}{text[found.end(1) :]}", proposed=True)


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
    if token.now == OTHER_PARITY:
        return _of_parity(path, number, lines[number - 1])
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
    """The statement before the line, or after the statement that begins there; in a block that it opens, first. Where
    its own operations come before and after, it is an assignment of what is computed before.
    """
    python, last = path.suffix == ".py", number
    if added.within and not python:
        found = _ASSIGNED.fullmatch(lines[number - 1]) if all_threads else None
        if found is None:
            return None
        value = f"{found[1]}const auto computed = {found[3]};  // proposed by pipesim\n{found[1]}__syncthreads();\n"
        return SourceFix(path, number, f"{value}{found[1]}{found[2]} = computed;", proposed=True)
    if not (added.before or added.places or python) and all_threads:  # after an if
        found = _CONDITION.fullmatch(lines[number - 1])
        last = _end_of_if(lines, number, found[3]) if found is not None else 0
        new = f"{found[1]}__syncthreads();  // proposed by pipesim" if found is not None else ""
        return SourceFix(path, last, f"{lines[last - 1]}\n{new}", proposed=True) if last else None
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
        case Op.FENCE if operand(op, "fence") == Fence.ACQ_REL and scope_of(operand(op, "semantics")) == Scope.GPU:
            return "__threadfence();"
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
