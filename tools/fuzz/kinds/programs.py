"""Programs (docs/flat-program.md): random small ones, with mutated operations, tables and text.

A result is confirmed by the naive search: what is proved has no schedule that fails, and each schedule that is shown
ends in what it says.
"""

import json
from random import Random
from typing import Any

from pipesim.errors import PipesimError
from pipesim.model.ops import OPERANDS, Op
from pipesim.model.program import Program
from pipesim.model.program_json import dumps, loads
from tests.support.random_programs import FAMILIES
from tools.fuzz import naive
from tools.fuzz.cases import Answer, Case, Confirm
from tools.fuzz.mutate import INTEGERS, as_json, damaged, mutated, near

FILE = "p.json"
MOST_STATES = 1_500  #: of the naive search; a program with more is not confirmed
NAIVE_OPERATIONS = 400  #: of a program, likewise
_COMMANDS = (
    "check p.json --quick --json", "check p.json --quick --json", "check p.json --quick --json",
    "check p.json --quick --json --strict-proxies --strict-init --strict-tensor-memory",
    "check p.json --json --time-limit 2 --max-states 2000", "check p.json --quick", "check p.json --format github",
    "check p.json --format junit --quick", "run p.json --json", "run p.json --max-steps 5000 --ctas 2",
    "show p.json --json", "show p.json", "table p.json --json", "export p.json --to promela --json",
    "verify p.json --no-hardware --json --time-limit 0.05",
    "run p.json --save-program again.json --save-trace t.parquet",
)  # fmt: skip


def make(rng: Random) -> Case:
    """A program of a family with one to three mutations."""
    family = rng.choice(sorted(FAMILIES))
    document: Any = json.loads(dumps(FAMILIES[family](rng.randrange(1 << 20))))
    said = [family]
    chance = rng.random()
    for _ in range(rng.choice((1, 1, 2, 3))):
        if chance < 0.55:
            said.append(_mutate_code(document["code"], rng))
        elif chance < 0.9:
            document, words = mutated(document, rng)
            said.append(words)
            if not isinstance(document, dict):
                break
    data = as_json(document, rng)
    if chance >= 0.9:
        data, words = damaged(data, rng)
        said.append(words)
    line = tuple(rng.choice(_COMMANDS).split())
    return Case(", ".join(said), {FILE: data}, line, confirm(data), ("again.json", "t.parquet"))


def _mutate_code(code: Any, rng: Random) -> str:
    """Change one operation of a program's code in place; what was done, in words."""
    busy = [rows for rows in code if rows]
    if not busy:
        return "no operation"
    rows = rng.choice(busy)
    at = rng.randrange(len(rows))
    how = rng.choice(("operand", "operand", "operand", "name", "delete", "twice", "swap", "move", "odd"))
    match how:
        case "operand" if len(rows[at]) > 2:
            operand = rng.randrange(2, len(rows[at]))
            rows[at][operand] = near(rows[at][operand], rng) if rng.random() < 0.3 else rows[at][operand] ^ 1
        case "name":
            rows[at][1] = rng.choice(list(Op)).name
        case "delete":
            del rows[at]
        case "twice":
            rows.insert(at, list(rows[at]))
        case "swap":
            other = rng.randrange(len(rows))
            rows[at], rows[other] = rows[other], rows[at]
        case "move":
            rng.choice(code).insert(0, rows.pop(at))
        case _:
            op = rng.choice(list(Op))
            rows.insert(at, [rows[at][0], op.name, *(rng.choice((0, 0, 1, 1, 2, 32, -1, rng.choice(INTEGERS)))
                                                     for _ in OPERANDS[op])])  # fmt: skip
    return how


def searched(answer: Answer, program: Program) -> str | None:
    """What is wrong with a verdict by every schedule of the program; "" confirms it, and None says nothing of it.

    A proof is confirmed only by all schedules, and so is each kind that refutes. A large program is not searched.
    """
    if sum(map(len, program.code)) > NAIVE_OPERATIONS:
        return None
    seen = naive.explore(program, MOST_STATES)
    assert isinstance(answer.document, dict)
    if answer.code == 0 and answer.document["report"].get("verdict", "proved") == "proved":
        if seen.wrong:
            return f"proved, and a schedule ends in {', '.join(sorted(seen.wrong))}"
        return "" if seen.complete else None
    kinds = naive.seen_kinds(answer.document) - shown_with_a_change(answer)
    if seen.complete and kinds - seen.wrong:
        return f"refuted by {', '.join(sorted(kinds - seen.wrong))}, which no schedule shows"
    return "" if seen.complete and kinds else None


def report_of(answer: Answer) -> dict[str, Any] | None:
    """The report of an answer that has a verdict."""
    report = answer.document.get("report") if isinstance(answer.document, dict) else None
    return report if answer.code in (0, 1) and isinstance(report, dict) and "refutations" in report else None


def shown_with_a_change(answer: Answer) -> set[str]:
    """The kinds that the program has only with a change of it, or after a fault, from which on no move is followed."""
    kinds: dict[bool, set[str]] = {False: set(), True: set()}
    for each in (report_of(answer) or {"refutations": []})["refutations"]:
        kinds[each.get("after") is not None or bool(each.get("elsewhere"))].add(each["finding"]["kind"])
    return kinds[True] - kinds[False]


def confirm(data: bytes) -> Confirm:
    """What confirms the answer of a command on this program."""

    def confirmed(answer: Answer) -> str | None:
        if (report := report_of(answer)) is None:
            return None
        try:
            program = loads(data.decode("utf-8"))
        except PipesimError as error:
            return f"an answer on a program that is refused: {error.fact}"
        found = searched(answer, program)
        if answer.code == 0 or found or sum(map(len, program.code)) > NAIVE_OPERATIONS:
            return found
        replayed = False
        for shown in report["refutations"]:
            kind = shown["finding"]["kind"]
            if kind in naive.UNSEEN or shown.get("after") is not None or shown.get("elsewhere"):
                continue
            again, replayed = naive.replay(program, shown["replay"]), True
            if again is None or not naive.seen_kinds({"findings": [shown["finding"]]}) <= again:
                ends = "is not possible" if again is None else f"ends in {sorted(again)}"
                return f"a counterexample of {kind} that {ends}"
        return "" if replayed else found

    return confirmed
