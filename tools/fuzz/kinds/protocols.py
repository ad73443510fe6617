"""Protocol files: right ones with a grammar of the mistakes that are made in Python and in the description language.

A file is code that is run, so what it does to its own process is its author's business; but what pipesim says of it is
an error at a line of the file, or a result that the naive search confirms.
"""

import re
from random import Random

from pipesim.errors import PipesimError
from pipesim.targets import find
from tools.fuzz.cases import Answer, Case, Confirm
from tools.fuzz.kinds.programs import report_of, searched
from tools.fuzz.mutate import damaged

FILE = "mine.py"
_RING = """\
from pipesim import Protocol
from pipesim.pipelines import ProducerConsumerPipeline


def ring(stages: int = 2, tiles: int = 3, nbytes: int = 64, warps: int = 1):
    p = Protocol("ring")
    tile = p.smem("tile", slots=stages, nbytes=nbytes)
    storage = p.mbarriers("pipe", 2 * stages)

    @p.init
    def init():
        ProducerConsumerPipeline(storage, stages).init_mbars(producer_arrive_count=1, consumer_arrive_count=warps)

    @p.role("load")
    def load(w):
        pipe = ProducerConsumerPipeline(storage, stages)
        with w.elect_one():
            for i in w.loop(tiles, "tiles"):
                with pipe.produce() as stage:
                    stage.mbar().expect_bytes(nbytes)
                    w.tma_load(tile[stage.index()], stage.mbar(), i)

    @p.role("mma", warps=warps)
    def mma(w):
        pipe = ProducerConsumerPipeline(storage, stages)
        with w.elect_one():
            for i in w.loop(tiles, "tiles"):
                with pipe.consume_explicit() as stage:
                    w.read(tile[stage.index()], i)
                    stage.arrive()

    return p
"""
_BARE = """\
from pipesim import Protocol


def ring(tiles: int = 2):
    p = Protocol("ring")
    full = p.mbarriers("full", 1, 1)
    empty = p.mbarriers("empty", 1, 1)
    cell = p.smem("cell", slots=1, nbytes=64)

    @p.role("load")
    def load(w):
        with w.elect_one():
            for i in w.loop(tiles, "tiles"):
                empty[0].wait((i & 1) ^ 1)
                w.write(cell[0], i)
                full[0].arrive()

    @p.role("mma")
    def mma(w):
        with w.elect_one():
            for i in w.loop(tiles, "tiles"):
                full[0].wait(i & 1)
                w.read(cell[0], i)
                w.work(100)
                empty[0].arrive()

    return p
"""
#: What may stand in place of a value.
_VALUES = (
    "None", "True", "-1", "0", "1", "2", "3", "64", "1.5", "'x'", "''", "[]", "{}", "()", "w", "p", "tile", "stage",
    "i", "lambda: 1", "print", "10**6", "2**31", "2**62", "2**64", "10**30", "float('nan')", "object()", "...",
    "b'x'", "range(3)", "stages", "'\\x1b[31m'", "'\\ud800'", "'*/'", "'::error::'", "'x' * 10000", "type",
    "NotImplemented", "1j", "{1: 2}", "self", "tile[0]", "full", "full[0]",
)  # fmt: skip
#: Statements that may stand on a line of their own.
_STATEMENTS = (
    "pass", "return", "return p", "return None", "yield", "yield p", "await p", "break", "continue",
    "raise ValueError('no')", "raise KeyboardInterruptX", "raise", "assert False", "assert 0, '\\x1b[2J'", "1 / 0",
    "x = 1", "del p", "del w", "w = None", "p = None", "stage = None", "import os", "import no_such_module",
    "from pipesim import nothing", "print('hello')", "global p", "import sys; sys.exit()", "import sys; sys.exit(0)",
    "raise SystemExit", "raise StopIteration", "raise RecursionError", "raise MemoryError",
    "raise OSError(28, 'full')", "raise GeneratorExit", "raise BaseException('x')", "raise UnicodeError",
    "raise type('E', (Exception,), {'__str__': lambda self: 1 / 0})()", "raise type('E', (BaseException,), {})('x')",
    "raise type('E', (Exception,), {'__str__': lambda self: exit(0)})()",
    "raise ExceptionGroup('g', [ValueError()])", "def f(): return f()\nf()", "p.role('load')(lambda w: None)",
    "p.role('load')", "p.smem('tile', slots=1, nbytes=64)", "w.nothing()", "w.loop(3)", "w.loop(3, 'tiles')",
    "w.elect_one()", "w.work(-1)", "w.work(2**62)", "w.work(1.5)", "w.work('x')", "w.read(None)",
    "w.barrier_sync(0)", "w.setmaxnreg(40)", "stage.arrive()", "stage.mbar()", "stage.index().x",
    "stage.index() + None", "tile[99]", "tile[-1]", "tile['x']", "tile[0][0]", "full[0].arrive(count=-1)",
    "full[0].arrive(2**40)", "full[0].wait(2)", "full[0].wait()", "full[0].init(0)", "full[0].inval()",
    "storage[0].arrive()", "if i: stage.arrive()", "while i: pass; break", "i += 1", "i = i / 2", "int(i)",
    "range(i)", "i // 0", "hash(i)", "{i: 1}[i]", "bool(stage.index())", "async def g(): pass", "class C: pass",
    "with p: pass", "with w.elect_one(): pass", "for x in w: pass", "for x in w.loop(2, 'x'): pass",
    "for x in w.loop(-1, 'x'): pass", "for x in w.loop(None, 'x'): pass", "for x in w.loop(10**9, 'x'): break",
    "try:\n    stage.arrive()\nexcept Exception:\n    pass", "import warnings; warnings.warn('x')",
    "import logging; logging.error('x')", "__name__ = 3", "__file__ = None", "Protocol = None", "globals().clear()",
    "locals().clear()", "p.name = None", "p.__class__ = object", "w.__dict__.clear()",
)  # fmt: skip
#: What may stand at the top of the file.
_TOPS = (
    "# -*- coding: latin-1 -*-", "# -*- coding: no_such -*-", "from __future__ import annotations",
    "from __future__ import braces", "def other(): return None", "def __getattr__(name): raise RuntimeError(name)",
    "def __getattr__(name): return 3", "ring = 3", "x: int", "__all__ = 3", "def __dir__(): return [1]",
    "class ring: pass", "@property", "raise ImportError", "raise KeyboardInterruptX", "\f", "\t",
    "import pipesim.model.machine as m", "Protocol = int", "def ring(): pass", "async def ring(): pass",
    "def ring(*a, **k): pass", "[" * 300,
)  # fmt: skip
_SIGNATURES = (
    "()", "(x)", "(x=None)", "(x=1.5)", "(x=True)", "(x='a')", "(*x)", "(**x)", "(x: int = 2**70)", "(x: int = -1)",
    "(x, /)", "(*, x=1)", "(größe: int = 2)", "(stages: int = 0)", "(stages: int = 10**6)", "(tiles: int = 10**5)",
    "(self, x=1)",
)  # fmt: skip
#: With limits: a mistake can make a role record for minutes, which is its author's business.
_COMMANDS = tuple(
    f"{command} --time-limit {limit}"
    for limit, commands in (
        (1, ("check mine.py:ring --quick --json", "check mine.py --quick --json", "check mine.py:ring --json",
             "check mine.py:ring --quick", "check mine.py:ring --quick -p stages=3 --json",
             "check mine.py:ring -p tiles=1 --quick --json")),
        (20, ("run mine.py:ring --json", "run mine.py:ring --max-steps 20000", "show mine.py:ring --json",
              "table mine.py:ring --json", "run mine.py:ring -p x=1 --json",
              "export mine.py:ring --to promela --json")),
        (0.05, ("verify mine.py:ring --no-hardware --json",)),
    )
    for command in commands
)  # fmt: skip

_MISTAKES = (
    "delete", "twice", "swap", "statement", "statement", "statement", "value", "value", "value", "name", "indent",
    "top", "signature", "decorator", "typo", "call", "unclosed", "move",
)  # fmt: skip


def make(rng: Random) -> Case:
    """A file with one to four mistakes."""
    lines = rng.choice((_RING, _RING, _BARE)).splitlines()
    said = [_mistake(lines, rng) for _ in range(rng.choice((1, 1, 2, 2, 4)))]
    data = ("\n".join(lines) + "\n").encode("utf-8", "surrogatepass")
    if rng.random() < 0.04:
        data, words = damaged(data, rng)
        said.append(words)
    line = tuple(rng.choice(_COMMANDS).split())
    alone = _ends_its_process(data)
    return Case(", ".join(said), {FILE: data}, line, confirm(line[1]), speaks=True, alone=alone)


def _mistake(lines: list[str], rng: Random) -> str:
    """Make one in place; what it is."""
    at = rng.randrange(len(lines)) if lines else 0
    line = lines[at] if lines else ""
    indent = line[: len(line) - len(line.lstrip())]
    how = rng.choice(_MISTAKES)
    match how:
        case "delete":
            del lines[at : at + 1]
        case "twice":
            lines.insert(at, line)
        case "swap":
            other = rng.randrange(len(lines)) if lines else 0
            lines[at : at + 1], lines[other : other + 1] = lines[other : other + 1], lines[at : at + 1]
        case "statement":
            new = rng.choice(_STATEMENTS)
            lines[at:at] = [indent + part for part in new.split("\n")]
            return f"statement {new!r}"
        case "value":
            return _replaced(lines, at, r"\b\d+\b|\"\w+\"|(?<=[(,=] )\w+|(?<=[(\[])\w+", rng.choice(_VALUES), rng)
        case "name":
            names = re.findall(r"[a-z_]{2,}", " ".join(lines)) or ["x"]
            return _replaced(lines, at, r"[A-Za-z_]\w*", rng.choice(names), rng)
        case "indent":
            lines[at : at + 1] = [rng.choice(("", " ", "    ", "\t")) + line.strip()]
        case "top":
            lines.insert(rng.choice((0, 0, len(lines))), rng.choice(_TOPS))
        case "signature":
            new = rng.choice(_SIGNATURES)
            lines[:] = [re.sub(r"^def (\w+)\(.*\)", rf"def \1{new}", each) for each in lines]
        case "decorator":
            lines.insert(
                at, indent + rng.choice(("@p.role('x')", "@p.init", "@staticmethod", "@property", "@p.role", "@print"))
            )
        case "typo" if line:
            column = rng.randrange(len(line))
            lines[at] = line[:column] + rng.choice("()[]:=.,'\"#\\@ ~1x\0é") + line[column + 1 :]
        case "call":
            return _replaced(
                lines, at, r"\([^()]*\)", rng.choice(("", "()", "(1)", "(*[1, 2])", "(**{})", "()()", "(x=1)")), rng
            )
        case "unclosed":
            lines[at : at + 1] = [line.replace("with ", "", 1).rstrip(":").replace(" as stage", "")]
        case _:
            lines.insert(rng.randrange(len(lines) + 1), lines.pop(at) if lines else "")
    return how


def _replaced(lines: list[str], at: int, pattern: str, text: str, rng: Random) -> str:
    """One of a pattern's matches in a line replaced."""
    found = list(re.finditer(pattern, lines[at])) if lines else []
    if found:
        match = rng.choice(found)
        lines[at] = lines[at][: match.start()] + text + lines[at][match.end() :]
    return f"{text!r} in line {at + 1}"


def _ends_its_process(data: bytes) -> bool:
    """Whether the file may leave this process changed: it prints, warns, or touches what others use."""
    return any(word in data for word in (b"print", b"warn", b"logging", b"__class__", b"clear()", b"__dict__", b"exit"))


def confirm(target: str) -> Confirm:
    """What confirms a verdict on the file."""

    def confirmed(answer: Answer) -> str | None:
        if (report := report_of(answer)) is None:
            return None
        params = report["heading"]["params"]
        try:
            program = find(target).build({name: params[name] for name in params})
        except PipesimError:
            return None  # a file that is another one when it is run again
        alike = answer.code == 0 or {each["at"] == params for each in report["refutations"]} == {True}
        return searched(answer, program) if alike else None

    return confirmed
