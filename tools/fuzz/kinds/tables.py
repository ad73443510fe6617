"""Kernel tables (docs/own-kernel.md): a right one with mutated lines, arguments, expressions, includes and bytes.

What is read must be what a C++ compiler makes of the same file through ``table.cuh``: the same names and numbers.
"""

from __future__ import annotations

import shutil
import subprocess
from itertools import pairwise
from pathlib import Path
from random import Random

from hwkernels.device.sources import RECORDER
from hwkernels.source_recorder.table import Table, names_in, read_table
from pipesim.errors import PipesimError
from tests.support.hostile_names import HOSTILE
from tools.fuzz.cases import Answer, Case, Confirm
from tools.fuzz.mutate import damaged

FILE = "k.table.h"
VALUES = {"STAGES": 4, "CONSUMER_WARPS": 2, "WARPS_": 1, "N": 3}
COMPILED = 16  #: of this many accepted tables one is also compiled
_TABLE_CUH = RECORDER / "table.cuh"
RIGHT = """\
// A comment.
PIPESIM_ROLE(producer, 1)
PIPESIM_ROLE(consumer, CONSUMER_WARPS)

PIPESIM_BARRIER(full, STAGES, 1)
PIPESIM_BARRIER(empty, STAGES, CONSUMER_WARPS)

PIPESIM_SITE(wait_empty, producer, WAIT_ENTER, empty)
PIPESIM_SITE(got_empty, producer, WAIT_RETURN, empty)
PIPESIM_SITE(expect, producer, EXPECT, full)
PIPESIM_SITE(copy, producer, COPY, full)
PIPESIM_SITE(wait_full, consumer, WAIT_ENTER, full)
PIPESIM_SITE(got_full, consumer, WAIT_RETURN, full)
PIPESIM_SITE(work, consumer, WORK_BEGIN, none)
PIPESIM_SITE(worked, consumer, WORK_END, none)
PIPESIM_SITE(sync, consumer, BAR_ENTER, 1)
PIPESIM_SITE(synced, consumer, BAR_RETURN, 1)
PIPESIM_SITE(arrive, consumer, ARRIVE, empty)
"""
_EXPRESSIONS = (
    "0", "-1", "1", "1000000000", "10**9", "2**100", "9" * 5_000, "N", "n", "N + 1", "N - N", "N * STAGES", "(N)",
    "((((N))))", "N / 2", "N // 2", "N % 2", "~N", "-N", "+N", "N if N else 1", "N and 1", "f(N)", "N.real",
    "[1][0]", "1.5", "1e3", "True", "'1'", "0x10", "0b1", "010", "1_000", "1u", "__import__('os')", "N\\", "N)",
    "(N", "N,N", "", " ", "N N", "lambda: 1", "ſ", "(" * 200 + "1" + ")" * 200, "-" * 100_000 + "1",
    "1+" * 50_000 + "1", "2 - 3", "N := 4", "*N", "1;2", "é", "Ｎ",
)  # fmt: skip
_WORDS = (
    "producer", "consumer", "full", "empty", "none", "wait_empty", "WAIT_ENTER", "GROUP_ENTER", "COMMIT",
    "BAR_ARRIVE", "17", "1", "01", "x", "WARPS", "SITES", "class", "_", "é", "bulk", "tcgen05",
)  # fmt: skip

_INCLUDES = (
    f'#include "{FILE}"', '#include "a.h"', '#include "gone.h"', "#include <a.h>", '# include "a.h" // x',
    '#include "../a.h"', '#include "/etc/passwd"',
)  # fmt: skip
_LINES = (
    "#define X 1", "PIPESIM_ROLE(", "PIPESIM_ROLE(a, 1) x", "// \\", "/* */", ";", "PIPESIM_role(a, 1)",
    "PIPESIM_ROLE(a, 1)PIPESIM_ROLE(b, 1)",
)  # fmt: skip


def make(rng: Random) -> Case:
    """A table with one to three mutated lines."""
    lines, said = RIGHT.splitlines(), []
    files: dict[str, bytes] = {}
    for _ in range(rng.choice((0, 1, 1, 2, 3))):
        at = rng.randrange(len(lines)) if lines else 0
        how = rng.choice(
            ("argument", "argument", "expression", "expression", "delete", "twice", "swap", "include", "line", "name")
        )
        said.append(how)
        match how:
            case "argument" if lines:
                lines[at] = _with_argument(lines[at], rng.choice(_WORDS), rng)
            case "expression" if lines:
                lines[at] = _with_argument(lines[at], rng.choice(_EXPRESSIONS), rng)
            case "name" if lines:
                lines[at] = _with_argument(lines[at], rng.choice(list(HOSTILE.values())), rng)
            case "delete":
                del lines[at : at + 1]
            case "twice":
                lines[at:at] = lines[at : at + 1]
            case "swap":
                rng.shuffle(lines)
            case "include":
                lines.insert(at, rng.choice(_INCLUDES))
                files |= _included(rng)
            case _:
                lines.insert(at, rng.choice(_LINES))
    data = ("\n".join(lines) + "\n").encode("utf-8", "surrogatepass")
    if rng.random() < 0.1:
        data, words = damaged(data, rng)
        said.append(words)
    files[FILE] = data
    return Case(", ".join(said), files, confirm=confirm(compiled=rng.randrange(COMPILED) == 0), call=_read)


def _read() -> str:
    """What ``capture --kernel`` asks of a table, in the current folder."""
    path = Path(FILE)
    known = {name: VALUES.get(name, 2) for name in sorted(names_in(path))}
    return f"{len(read_table(path, known).sites)} sites"


def _with_argument(line: str, text: str, rng: Random) -> str:
    head, bracket, rest = line.partition("(")
    if not bracket:
        return text
    arguments = rest.removesuffix(")").split(",")
    arguments[rng.randrange(len(arguments))] = text
    return f"{head}({','.join(arguments)})"


def _included(rng: Random) -> dict[str, bytes]:
    """Files that include each other: a line, a cycle, or two each, so that what is read doubles with each of them."""
    many = rng.choice((1, 3, 18))
    if rng.random() < 0.5:
        return {"a.h": b"PIPESIM_ROLE(extra, 1)\n"}
    names = ["a.h", *(f"a{n}.h" for n in range(many))]
    files = {name: f'#include "{other}"\n'.encode() * 2 for name, other in pairwise(names)}
    return files | {names[-1]: rng.choice((b'#include "a.h"\n', b"", b"PIPESIM_ROLE(extra, 1)\n"))}


def confirm(*, compiled: bool) -> Confirm:
    """What confirms a table that was read."""

    def confirmed(answer: Answer) -> str | None:
        if answer.code != 0 or not compiled or not compiler():
            return None
        path = Path(FILE)
        try:
            values = {name: VALUES.get(name, 2) for name in sorted(names_in(path))}
            wrong = _differs(read_table(path, values), values)
        except PipesimError as error:
            return f"read once, and refused again: {error.fact}"
        return f"a compiler reads something else: {wrong}" if wrong else ""

    return confirmed


def _differs(table: Table, values: dict[str, int]) -> str:
    """What a C++ compiler finds in the table that it was not read as, "" if nothing."""
    facts = {"SITES": len(table.sites), "WARPS": len(table.agents)}
    facts |= {f"SITE_{site.name}": number for number, site in enumerate(table.sites)}
    facts |= {f"WARPS_{role}": warps for role, warps in table.roles}
    for group in table.barriers:
        facts |= {f"STAGES_{group.name}": group.stages, f"COUNT_{group.name}": group.count}
    checks = "\n".join(f'static_assert({name} == {number}u, "{name}");' for name, number in facts.items())
    defines = [f"-D{name}={value}" for name, value in values.items()]
    source = f'#define PIPESIM_TABLE "{FILE}"\n#include "{_TABLE_CUH}"\n{checks}\n'
    command = ["g++", "-std=c++17", "-fsyntax-only", "-I.", *defines, "-x", "c++", "-"]
    done = subprocess.run(
        command, input=source, capture_output=True, text=True, errors="replace", check=False, timeout=60
    )
    return done.stderr.partition("static assertion failed: ")[2].partition("\n")[0]  # what it refuses is harmless


def compiler() -> bool:
    """Whether tables can be compiled here."""
    return shutil.which("g++") is not None
