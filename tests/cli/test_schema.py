"""``pipesim schema``: the list of schemas, one of them, and a name that none has."""

import json

import pytest
from jsonschema import Draft202012Validator

from tests.cli.conftest import Call


@pytest.mark.slow
def test_without_a_name_every_schema_is_a_line(call: Call) -> None:
    answer = call("schema")
    listed = [line.split()[0] for line in answer.out.splitlines()]
    assert {"check.v1", "program.v1", "error.v1"} <= set(listed)
    assert [name for name, _ in call("schema", "--json").json["schemas"]] == listed


@pytest.mark.sampled(0, 2)
@pytest.mark.parametrize("words", [("check",), ("check.v1",), ("check", "--json")])
def test_a_schema_judges_what_its_command_prints(call: Call, words: tuple[str, ...]) -> None:
    answer = call("schema", *words)
    judge = Draft202012Validator(json.loads(answer.out))
    document = call("check", "producer_consumer", "-p", "tiles=2", "--json").json
    assert (answer.code, judge.is_valid(document), judge.is_valid({**document, "report": {}})) == (0, True, False)
