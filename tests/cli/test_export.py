"""``pipesim export``: a protocol's flat program in the language of SPIN's models."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from pipesim.export.promela import to_promela
from pipesim.targets import find

Call = Callable[..., Any]
PC = "producer_consumer"


def test_the_model_is_printed(call: Call) -> None:
    answer = call("export", PC, "--to", "promela", "-p", "tiles=1")
    assert (answer.code, answer.err) == (0, "")
    assert answer.out == to_promela(find(PC).build({"tiles": 1}))
    assert answer.out.startswith("/* producer_consumer: every schedule of its flat program, for SPIN 6.\n")


def test_or_written_into_a_file(call: Call) -> None:
    answer = call("export", PC, "--to", "promela", "-p", "tiles=1", "-o", "ring.pml")
    assert answer.out == "wrote ring.pml: its first lines explain how to run SPIN on it\n"
    assert Path("ring.pml").read_text(encoding="utf-8") == to_promela(find(PC).build({"tiles": 1}))


def test_a_file_is_overwritten_on_demand_only(call: Call) -> None:
    Path("ring.pml").write_text("mine", encoding="utf-8")
    refused = call("export", PC, "--to", "promela", "-o", "ring.pml")
    assert (refused.code, refused.error[0]) == (2, "pipesim: ring.pml exists already")
    assert Path("ring.pml").read_text(encoding="utf-8") == "mine"
    assert call("export", PC, "--to", "promela", "-o", "ring.pml", "--force").code == 0


def test_a_users_own_protocol_and_a_program_file(call: Call, ring: str) -> None:
    assert call("run", ring, "--save-program", "ring.json").code == 0
    own = call("export", ring, "--to", "promela")
    assert own.code == 0
    assert call("export", "ring.json", "--to", "promela").out == own.out


def test_as_json(call: Call) -> None:
    printed = call("export", PC, "--to", "promela", "-p", "tiles=1", "--json").json
    assert printed == {
        "exit_code": 0, "format": "promela", "file": None, "text": to_promela(find(PC).build({"tiles": 1})),
    }  # fmt: skip
    assert call("export", PC, "--to", "promela", "-o", "ring.pml", "--json").json["file"] == "ring.pml"


def test_a_language_that_nobody_speaks(call: Call) -> None:
    answer = call("export", PC, "--to", "tla")
    assert (answer.code, answer.out) == (2, "")
    assert answer.error == ["pipesim: nothing can be exported to 'tla'", "  try: use --to promela"]


def test_mistakes_in_the_rest_are_told_as_everywhere(call: Call) -> None:
    assert call("export", PC).code == 2
    assert call("export", "no_such", "--to", "promela").error[0] == "pipesim: there is no protocol 'no_such'"
    assert "there is no folder" in call("export", PC, "--to", "promela", "-o", "no/ring.pml").error[0]
