"""Mistakes in a user's protocol: each is told as a fact with the line that the user wrote, marked ``# here`` below."""

from collections.abc import Callable
from pathlib import Path

import pytest

from pipesim.lang import recorder as recording
from tests.support.fixture_types import Call
from tests.support.lanes import slow_but

GOOD = """\
from pipesim import Protocol
from pipesim.pipelines import ProducerConsumerPipeline as Pipe

def f(stages: int = 4, tiles: int = 8):
    p = Protocol("f")
    tile = p.smem("tile", slots=stages, nbytes=1024)
    bars = p.mbarriers("pipe", 2 * stages)
    more = p.mbarriers("more", 2)
    kept = []

    @p.init
    def init():
        Pipe(bars, stages).init_mbars(1, 1)
        more[0].init(1)

    @p.role("load")
    def load(w):
        pipe = Pipe(bars, stages)
        kept.append(w)
        with w.elect_one():
            for i in range(tiles):
                with pipe.produce() as stage:
                    stage.mbar().expect_bytes(1024)
                    w.tma_load(tile[stage.index()], stage.mbar(), item=i)

    @p.role("mma")
    def mma(w):
        pipe = Pipe(bars, stages)
        with w.elect_one():
            for i in range(tiles):
                with pipe.consume() as stage:
                    w.read(tile[stage.index()], item=i)

    return p
"""
READ = "w.read(tile[stage.index()], item=i)"
LOAD = "w.tma_load(tile[stage.index()], stage.mbar(), item=i)"
CONSUME = """                with pipe.consume() as stage:
                    w.read(tile[stage.index()], item=i)
"""
PLAIN = "write it as a plain function, without yield, async or await"
DIVIDE = "divide with //, which keeps whole numbers whole"

#: What is replaced, by what, the fact, and the correction ("" for none).
REFUSED: dict[str, tuple[str, str, str, str]] = {
    # tiles and their slots
    "a slot that is not there": (READ, "w.read(tile[7], item=i)  # here", "there is no tile[7]",
        "use 0 to 3, for example tile[stage.index()]"),
    "a fraction as a slot": (READ, "w.read(tile[i / 2], item=i)  # here",
        "the slot of tile[...] is 0.0 of type float, not a whole number", DIVIDE),
    "all slots as one": (READ, "w.read(tile, item=i)  # here", "mma: tile has 4 slots, but one is expected",
        "name one, for example tile[stage.index()]"),
    "a number as a slot": (READ, "w.read(3, item=i)  # here",
        "mma: expected a slot of a tile, not an object of type int", "name one, for example tile[stage.index()]"),
    "a tile that was forgotten": ("tile = p.smem(", "tile = None; p.smem(",
        "load raised TypeError: 'NoneType' object is not subscriptable", ""),
    # names
    "a typo of the protocol": ("bars = p.mbarriers(", "bars = p.mbariers(  # here\n        ",
        "mine.py:f raised AttributeError: 'Protocol' object has no attribute 'mbariers'", "did you mean mbarriers?"),
    "a typo of the warp": (READ, "w.raed(tile[0])  # here",
        "mma raised AttributeError: 'Warp' object has no attribute 'raed'", "did you mean read?"),
    "a stage that was not entered": (CONSUME, " " * 16 + "stage = pipe.consume()\n" + " " * 16 + READ + "  # here\n",
        "mma raised AttributeError: 'ConsumeContext' object has no attribute 'index'",
        "enter it first: with ... as stage:"),
    # handles
    "used after its release": (CONSUME, CONSUME.replace(READ, "pass") + " " * 16 + READ + "  # here\n",
        "mma: index() of consumer stage 0 after its release", "acquire the next stage before using it"),
    "kept across iterations": (CONSUME, " " * 16 + "stage = pipe.acquire_consumer()  # here\n",
        "mma: a second acquire while consumer stage 0 is held", "release the first stage before acquiring the next"),
    "dropped": (CONSUME, " " * 16 + "pass\n" + " " * 12 + "stage = pipe.acquire_consumer()  # here\n",
        "mma: consumer stage 0 was never released",
        "release it on every path, or acquire it in a with statement"),
    # exceptions
    "a division by zero": (READ, "1 // 0  # here", "mma raised ZeroDivisionError: integer division or modulo by zero",
        ""),
    "a message of several lines": (READ, "raise ValueError('one\\ntwo')  # here", "mma raised ValueError: one two", ""),
    "an assertion without words": (READ, "assert i  # here", "mma raised AssertionError", ""),
    "in a function of the user's": ("def f(", "def mine():\n    return 1 // 0  # here\n\ndef f(",
        "mma raised ZeroDivisionError: integer division or modulo by zero", ""),
    "an exit": (READ, "raise SystemExit  # here", "a role of mine.py:f calls sys.exit()", ""),
    # roles
    "a generator": ('@p.role("mma")', '@p.role("mma")  # here', "role mma is a generator or a coroutine",
        PLAIN),
    "a generator that is handed over": ('    @p.role("mma")\n    def mma(w):\n',
        '    @p.role("mma")\n    def handed(w):\n        return mma(w)\n\n    def mma(w):  # here\n        yield\n',
        "what mma returns is a generator or a coroutine", PLAIN),
    "a role without its name": ('@p.role("mma")', "@p.role  # here",
        "the name of a role is of type function, not a string", 'write @protocol.role("load")'),
    "a role without a warp": ('@p.role("mma")\n    def mma(w):', '@p.role("mma")  # here\n    def mma():',
        "role mma cannot be called: too many positional arguments", "write def mma(w):"),
    "an init with an argument": ("@p.init\n    def init():", "@p.init  # here\n    def init(w):",
        "the init cannot be called: missing a required argument: 'w'", "write def init():"),
    "the warp of another": (READ, "kept[0].read(tile[0])  # here", "mma uses the warp object of load",
        "use the argument of the role's own function"),
    "a loop without an end": (READ, "while True: w.work(1)  # here", "mma records more than 1,000 operations",
        "make it end, for example: for i in range(tiles)"),
    "outside a role": ("    return p", "    more[0].arrive()  # here\n    return p",
        "an operation was called outside a role",
        "call it inside a function marked @protocol.role(...) or @protocol.init"),
    "a pipeline outside a role": ("    return p", "    Pipe(bars, stages)  # here\n    return p",
        "an operation was called outside a role",
        "call it inside a function marked @protocol.role(...) or @protocol.init"),
    # types of arguments
    "a fraction of bytes": (".expect_bytes(1024)", ".expect_bytes(4096 / 4)  # here",
        "the number of bytes is 1024.0 of type float, not a whole number", DIVIDE),
    "a text as an item": (READ, "w.read(tile[0], item='a')  # here",
        "mma: item of READ is of type str, not a whole number", ""),
    "no number of cycles": (READ, "w.work(cycles=None)  # here",
        "the number of cycles is None of type NoneType, not a whole number", ""),
    "a fraction of a slot": ("nbytes=1024)", "nbytes=4096 / 4)  # here",
        "the bytes of a slot of tile is 1024.0 of type float, not a whole number", DIVIDE),
    "a fraction of the slots": ("slots=stages,", "slots=stages / 1,  # here\n       ",
        "the number of slots of tile is 4.0 of type float, not a whole number", DIVIDE),
    "a fraction of the mbarriers": ("2 * stages)", "2 * stages / 1)  # here",
        "the number of mbarriers of pipe is 8.0 of type float, not a whole number", DIVIDE),
    "a fraction of the warps": ('@p.role("mma")', '@p.role("mma", warps=2.0)  # here',
        "the number of warps of role mma is 2.0 of type float, not a whole number", DIVIDE),
    "a fraction of the stages": ("Pipe(bars, stages)\n        with", "Pipe(bars, stages / 1)  # here\n        with",
        "mma raised TypeError: 'float' object cannot be interpreted as an integer",
        "check the arguments of this call of ProducerConsumerPipeline"),
    "a count of a fraction": ("more[0].init(1)", "more[0].init(0.5)  # here",
        "load: count of INIT is of type float, not a whole number", DIVIDE),
    "a number as a barrier": (LOAD, "w.tma_load(tile[0], 0, item=i)  # here",
        "load: expected a barrier, not an object of type int", "give one, for example stage.mbar() or storage[0]"),
    "tile and barrier exchanged": (LOAD, "w.tma_load(stage.mbar(), tile[0], item=i)  # here",
        "load: expected a slot of a tile, not an object of type SharedMemBarrier",
        "name one, for example tile[stage.index()]"),
    "a copy of nothing named": (LOAD, "w.tma_load(tile[0], stage.mbar())  # here",
        "load raised TypeError: Warp.tma_load() missing 1 required positional argument: 'item'", ""),
    # the function
    "no return": ("def f(", "def f(  # here\n    ", "mine.py:f returned NoneType, not a Protocol",
        "end it with: return p"),
    "a function that suspends": ("def f(", "async def f(  # here\n    ", "mine.py:f is a generator or a coroutine",
        "write it as a plain function that ends with: return p"),
    "parameters without names": ("def f(stages: int = 4, tiles: int = 8",
        "def f(  # here\n    stages=4, tiles=8, **more",
        "mine.py:f: parameter **more has no whole number as its default value", "leave **more out"),
    "no roles": ('p = Protocol("f")', 'p = Protocol("f")  # here\n    q, p = p, Protocol("q")', "f has no roles",
        "mark at least one function with @protocol.role(...)"),
    # barriers that no role initialises
    "no init": ('bars = p.mbarriers("pipe", 2 * stages)', 'bars = p.mbarriers("pipe", 2 * stages)  # here',
        "no role initialises pipe, more",
        "mark a function @protocol.init, name the count: protocol.mbarriers(name, size, 1), or initialise in a role"),
}  # fmt: skip


def source_of(mistake: str) -> str:
    """The file with its mistake; three need more than one replacement."""
    old, new, *_ = REFUSED[mistake]
    head, found, tail = GOOD.rpartition(old)
    assert found, f"{old!r} is not in the file"
    text = head + new + tail
    match mistake:
        case "a generator":
            return text.replace(READ, f"yield {READ}")
        case "in a function of the user's":
            return text.replace(READ, "mine()")
        case "a tile that was forgotten":
            return text.replace(LOAD, f"{LOAD}  # here")
        case "no return":
            return text.replace("    return p\n", "")
        case "no roles":
            return text.replace("return p", "return q")
        case "no init":
            return text.replace("    @p.init\n", "")
    return text


def here(source: str) -> int:
    """The number of the marked line."""
    (number,) = (n for n, line in enumerate(source.splitlines(), 1) if line.endswith("# here"))
    return number


@pytest.mark.sampled(8, 21)
@pytest.mark.parametrize("mistake", slow_but(list(REFUSED)[::4], REFUSED))
def test_a_mistake_is_told_with_the_users_line(
    call: Call, user: Callable[[str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mistake: str
) -> None:
    monkeypatch.setattr(recording, "MAX_AGENT_OPERATIONS", 1000)
    source = source_of(mistake)
    user(source)
    answer = call("run", "mine.py:f")
    assert (answer.code, answer.out) == (2, "")
    lines = answer.err.splitlines()
    _, _, fact, correction = REFUSED[mistake]
    assert lines[0] == f"pipesim: {fact}"
    assert f"  at: {tmp_path / 'mine.py'}:{here(source)}" in lines
    general = "call the function in Python to see the whole traceback"
    assert [line for line in lines if line.startswith("  try: ") and general not in line] == (
        [f"  try: {correction}"] if correction else []
    )


class TestBarriers:
    """What only the run can tell, with the line of the operation and what mends it."""

    @pytest.mark.slow
    def test_an_init_that_forgets_one_of_several(self, call: Call, user: Callable[[str], None], tmp_path: Path) -> None:
        user(GOOD.replace(READ, f"{READ}; more[1].arrive()  # here"))
        answer = call("run", "mine.py:f", "--json")
        assert answer.code == 1
        (fault,) = answer.json["report"]["faults"]
        assert fault["claim"] == "mma: the barrier is used before its init on more[1]"
        assert fault["line"] == f"{tmp_path / 'mine.py'}:{here((tmp_path / 'mine.py').read_text())}"
        assert fault["correction"] == "initialise more[1] in the init: the program never does"
        assert "likely correction: initialise more[1] in the init" in call("run", "mine.py:f").out
