"""A file with one protocol needs no ``:function``; of several the error names each."""

from pathlib import Path

import pytest

from pipesim.errors import UnknownProtocolError
from pipesim.targets import find
from tests.support.fixture_types import Call

HEAD = "from pipesim import Protocol\nfrom pathlib import Path\n"
MAKES = """
def {name}(stages: int = 2){arrow}:
    p = Protocol("{name}")

    @p.role("a")
    def a(w):
        w.work(stages)

    return p
"""


def makes(name: str, arrow: str = "") -> str:
    return MAKES.format(name=name, arrow=arrow)


@pytest.mark.parametrize(
    "source",
    [
        makes("ring"),
        makes("ring", " -> Protocol"),
        'from __future__ import annotations\n{HEAD}' + makes("ring", " -> Protocol"),
        makes("ring") + "\ndef lookup(name):\n    return name\n",  # it cannot be called without more
        makes("ring") + "\ndef lanes(n: int = 2) -> int:\n    return n\n",  # it says that it makes something else
        makes("ring", " -> Protocol") + "\ndef lanes(n: int = 2):\n    return n\n",  # the other says so
        makes("ring") + makes("_private"),
        makes("ring") + "\nclass Row:\n    pass\n",
    ],
)  # fmt: skip
def test_the_one_that_makes_a_protocol_is_meant(source: str) -> None:
    text = source.replace("{HEAD}", HEAD) if "{HEAD}" in source else HEAD + source
    Path("mine.py").write_text(text, encoding="utf-8")
    target = find("mine.py")
    assert (target.name, target.spelling) == ("mine.py:ring", "mine.py:ring")
    assert target.build({"stages": 3}).name == "ring"


@pytest.mark.sampled(0, 2)
@pytest.mark.parametrize(
    "words",
    [["check"], ["run"], ["show"], ["list"], ["verify", "--no-hardware"], ["export", "--to", "promela"]],
    ids=lambda words: words[0],
)  # fmt: skip
def test_every_command_takes_it(call: Call, ring: str, words: list[str]) -> None:
    file, colon, _ = ring.partition(":")
    short, long = call(*words, file), call(*words, ring)
    assert (short.code, short.out, short.err) == (long.code, long.out, long.err)
    assert short.code == 0
    assert call(*words, file + colon).out == long.out


@pytest.mark.parametrize(
    ("source", "cause"),
    [
        ("", "it has no functions"),
        ("X = 1\n", "it has no functions"),
        ("def a(n): ...\ndef b() -> int: ...\n",
         "a, b: of another type, or with a parameter whose default is not a whole number"),
    ],
)  # fmt: skip
def test_a_file_without_a_protocol(source: str, cause: str) -> None:
    Path("mine.py").write_text(source, encoding="utf-8")
    with pytest.raises(UnknownProtocolError) as refused:
        find("mine.py")
    assert refused.value.fact == "mine.py has no function that makes a protocol"
    assert refused.value.cause == cause
    assert "return p" in refused.value.correction
