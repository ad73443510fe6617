"""Schedules (``check --replay``, ``run --schedule``): lines of random moves of a small program, with mutated words.

What is accepted is replayed by the naive engine, move by move: the same findings, and none that is not possible.
"""

from random import Random

from pipesim.model.machine import initial_state
from pipesim.model.moves import canonical, moves
from pipesim.model.moves import make as made
from pipesim.model.program import Program
from pipesim.model.program_json import dumps
from pipesim.prove.counterexample.play import to_text
from tests.support.hostile_names import HOSTILE
from tests.support.random_programs import FAMILIES
from tools.fuzz import naive
from tools.fuzz.cases import Answer, Case, Confirm

_WORDS = (
    "", "0", "00", "1", "-1", "0o", "0n", "o", "n", "~", "~0", "~0:", "~0:64", "~0:0", "~0:-1",
    "~1:999999999999999999999", "0*0", "0*1", "0*-1", "0*2*2", "0*99999999", "0*10000000", "0*1e9",
    "0*" + "9" * 5_000, "9" * 5_000, "~0:" + "9" * 5_000, "~" + "9" * 5_000 + ":1", "٣", "0٣", "²", "0x1", "1_0",
    "+1", " ", "0 0", "0\n0", "\0", "*", "0*", "…", "--json", "0o*3",
)  # fmt: skip


def make(rng: Random) -> Case:
    """A schedule of some moves, with mutated words or none."""
    program = FAMILIES[rng.choice(sorted(FAMILIES))](rng.randrange(1 << 20)).with_strictness(frozenset())
    words = walked(program, rng).split(".")
    said = ["a schedule"]
    for _ in range(rng.choice((0, 1, 1, 2, 4))):
        at = rng.randrange(len(words) + 1)
        how = rng.choice(("word", "word", "delete", "twice", "swap", "cut", "times", "hostile"))
        said.append(how)
        match how:
            case "word":
                words.insert(at, rng.choice(_WORDS))
            case "delete":
                del words[at : at + 1]
            case "twice":
                words[at:at] = words[at : at + 1]
            case "swap":
                rng.shuffle(words)
            case "times":
                words[at : at + 1] = [f"{word}*{rng.choice((1, 2, 1000))}" for word in words[at : at + 1]]
            case "hostile":
                words.insert(at, rng.choice(list(HOSTILE.values())))
            case _:
                words = words[:at]
    text = ".".join(words)
    option = rng.choice((("run", "p.json", "--schedule"), ("check", "p.json", "--replay")))
    line = (*option[:2], f"{option[2]}={text}") if text.startswith("-") or rng.random() < 0.5 else (*option, text)
    return Case(", ".join(said), {"p.json": dumps(program).encode()}, (*line, "--json"), confirm(program, text))


def walked(program: Program, rng: Random) -> str:
    """The line of a random schedule, perhaps to its end."""
    state, schedule = canonical(initial_state(program)), []
    for _ in range(rng.choice((1, 5, 20, 200))):
        possible = moves(program, state)
        if not possible:
            break
        schedule.append(rng.choice(possible))
        after = made(program, state, schedule[-1])
        state = after.state
        if after.faults:
            break
    return to_text(tuple(schedule))


def confirm(program: Program, text: str) -> Confirm:
    """What confirms that a line was accepted or refused, and what it ends in."""

    def confirmed(answer: Answer) -> str | None:
        again = naive.replay(program, text)
        if again is None:
            return "" if answer.code == 2 else f"exit code {answer.code} for a line that is not a schedule"
        if answer.code == 2:
            unfit = "ConfigurationError" in answer.out  # a program that no hardware runs
            return "" if unfit else "a schedule that is possible is refused"
        found = naive.seen_kinds(answer.document)
        if found != again:
            return f"findings {sorted(found)}, and it ends in {sorted(again)}"
        expected = 1 if answer.document["findings"] else 3  # of one schedule that ends well nothing follows
        return "" if answer.code == expected else f"exit code {answer.code} where {expected} is expected"

    return confirmed
