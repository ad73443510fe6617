"""Every document that the tool writes or reads is valid by its schema, and a changed one is not."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from jsonschema import Draft202012Validator

import pipesim
from pipesim.cli.main import main
from pipesim.formats.schemas import NAMES, schema, versioned_name
from pipesim.formats.schemas.shapes import ANSWER_MEMBERS
from pipesim.model.program_json import dumps
from pipesim.protocols.catalog import BUILT_IN
from pipesim.targets import find, target_of
from pipesim.trace.library import trace_folder
from pipesim.trace.schema import SCHEMA_VERSION
from tests.support.documents import faults as errors
from tests.support.mistakes import BROKEN
from tests.support.recordings import RECORDINGS, one_of_each
from tools.update_golden import SCHEMAS, schema_files

ROOT = Path(__file__).resolve().parents[2]
RING = str(ROOT / "docs" / "examples" / "ring_two.py:ring")
TWO_STAGES = "producer_consumer-al1-cw1-s2-tb4096-t64-w0-g1.parquet"
MORE = str(ROOT / "docs" / "examples" / "ring_more.py:ring")
DUMP = str(ROOT / "tests" / "hang" / "dumps" / "setmaxnreg.h200.elf.xz")
TRACES = [str(trace_folder() / d / "producer_consumer-al1-cw1-s1-tb4096-t64-w0-g1.parquet") for d in ("h100", "h200")]

#: A command for each schema of an answer, and more where it has more to say.
COMMANDS: list[tuple[str, list[str]]] = [
    ("check", ["check", "producer_consumer"]),
    ("check", ["check", RING]),
    ("check", ["check", RING, "-p", "tiles=3", "--replay", "0.1"]),
    ("check-several", ["check", RING, "producer_consumer", "nowhere.py:ring"]),
    ("check-kernels", ["check", f"{ROOT}/docs/examples", "--list"]),
    ("check-redundant", ["check", MORE, "--redundant"]),
    ("explain", ["explain", "race"]),
    ("explain-assumption", ["explain", "proxies"]),
    ("explain-list", ["explain"]),
    ("run", ["run", "producer_consumer", "-p", "tiles=4"]),
    ("run", ["run", RING]),
    ("run-schedule", ["run", RING, "-p", "tiles=3", "--schedule", "0.1"]),
    (
        "calibrate",
        ["calibrate", str(ROOT / "traces" / "h200" / TWO_STAGES), "--values", "arrive.issue"],
    ),
    ("sweep", ["sweep", "producer_consumer", "-p", "tiles=8", "-p", "stages=2,40", "--jobs", "1"]),
    ("advise", ["advise", "producer_consumer", "-p", "tiles=8"]),
    ("verify", ["verify", "producer_consumer", "--recorded"]),
    ("verify", ["verify", "producer_consumer", "-p", "tiles=3", "--recorded"]),
    ("verify", ["verify", RING, "--no-hardware"]),
    ("verify-several", ["verify", RING, "producer_consumer", "--no-hardware", "--jobs", "1"]),
    ("compare", ["diff", TRACES[0]]),
    ("compare", ["diff", TRACES[0], "--tolerance", "50"]),
    ("compare-pair", ["diff", *TRACES]),
    ("show", ["show", "cluster_multicast"]),
    ("list", ["list"]),
    ("list-protocol", ["list", "producer_consumer"]),
    ("table", ["table", "producer_consumer"]),
    ("completion", ["completion", "bash"]),
    ("check-against", ["check", RING, "--against", "producer_consumer"]),
    ("check-brief", ["check", RING, "nothing_of_the_kind", "--format", "brief"]),
    ("export", ["export", "producer_consumer", "--to", "promela"]),
    ("new", ["new", "my_kernel.py"]),
    ("names", ["names", f"{ROOT}/docs/examples/row_max.ptx"]),
    ("doctor", ["doctor", "--for", "tests", "--for", "check"]),
    ("launches", ["launches", "--", "true"]),
    ("record", ["record", "--", "true"]),
    ("hang", ["hang", "--", "true"]),
    ("autopsy", ["autopsy", DUMP]),
    ("autopsy-brief", ["autopsy", DUMP, "--format", "brief"]),
    ("mcp-tools", ["mcp"]),
    ("skill", ["skill"]),
    ("schema-list", ["schema"]),
    ("error", ["check", "nothing_of_the_kind"]),
]


def answered(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> Any:
    capsys.readouterr()
    main([arguments[0], "--json", *arguments[1:]])
    return json.loads(capsys.readouterr().out)


def test_what_is_published_is_what_the_tool_makes_today() -> None:
    published = {path.name: path.read_text(encoding="utf-8") for path in SCHEMAS.glob("*.json")}
    assert published == schema_files(), "run python tools/update_golden.py"


@pytest.mark.sampled(4, 8)
@pytest.mark.parametrize("name", NAMES)
def test_a_schema_is_one_and_its_id_has_its_version(name: str) -> None:
    made = schema(name)
    Draft202012Validator.check_schema(made)
    assert made["$id"].startswith(f"urn:pipesim:schema:{name}:")
    assert schema(versioned_name(made)) == made


@pytest.mark.sampled(0, 6)
@pytest.mark.parametrize(("name", "arguments"), COMMANDS, ids=lambda x: x if isinstance(x, str) else x[0])
def test_the_answer_of_a_command(
    name: str,
    arguments: list[str],
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    document = answered(arguments, capsys)
    assert (document["schema"], document["pipesim"]) == (f"{name}.v1", pipesim.__version__)
    assert errors(name, document) == []
    assert [each for each in findings_in(document) if not each.get("claim")] == []
    for changed in mutations(document):
        assert errors(name, changed), "a changed document is seen"


def findings_in(document: Any) -> Iterator[Any]:
    """Every finding and warning in a document, wherever it is, by the name of the member that has it."""
    if isinstance(document, dict):
        for name in ("finding", "findings", "faults", "warnings", "advisories", "shared"):
            part = document.get(name, ())
            yield from (part if isinstance(part, list) else [part] if isinstance(part, dict) else [])
        yield from (each for part in document.values() for each in findings_in(part))
    elif isinstance(document, list):
        yield from (each for part in document for each in findings_in(part))


def test_every_answer_has_a_command_that_is_tried() -> None:
    by_hand = {"confirm", "confirm-program", "stress"}  # tests/confirm: they need a kernel with a finding, or a GPU
    by_hand |= {"instrument", "decode"}  # tests/launches/record/test_by_hand.py: they need an assembler
    by_hand |= {"check-sequence"}  # tests/ptx/dependent_launch/test_sequences.py: it needs kernels
    assert {name for name, _ in COMMANDS} | by_hand == set(ANSWER_MEMBERS)


@pytest.mark.sampled(0, 4)
@pytest.mark.parametrize("name", sorted(BUILT_IN))
def test_every_flat_program(name: str) -> None:
    document = json.loads(dumps(find(name).build()))
    for code in document["code"]:
        del code[40:]  # each operation is checked alike, and some programs have a hundred thousand
    assert errors("program", document) == []


@pytest.mark.slow
def test_the_operations_of_the_broken_programs() -> None:
    """Their code is short: all of it, and in all of them most operations that there are."""
    for function in BROKEN.values():
        assert errors("program", json.loads(dumps(target_of(function).build()))) == []


@pytest.mark.slow
def test_a_changed_program() -> None:
    document = json.loads(dumps(find("producer_consumer").build({"tiles": 2})))
    newer = {"pipelines", "launch_registers", "work", "architecture", "coverage", "cut", "silent", "stored", "unsure"}
    earlier = {name: each for name, each in document.items() if name not in newer}
    assert errors("program", earlier) == [], "a file of an earlier version is without them"
    wrong = [changed for changed in mutations(document) if not (newer & document.keys()) - changed.keys()]
    for row in ([1, "WAIT", 0, 0], [1, "NOTHING", 0], [1, "WORK", "many"], ["a line", "WORK", 3], []):
        changed = copy.deepcopy(document)
        changed["code"][0].append(row)
        wrong.append(changed)
    assert all(errors("program", changed) for changed in wrong)


@pytest.mark.parametrize("path", sorted((ROOT / "pipesim" / "timed" / "profiles").glob("*.json")), ids=lambda p: p.stem)
def test_every_profile(path: Path) -> None:
    document = json.loads(path.read_text(encoding="utf-8"))
    assert errors("profile", document) == []
    del document["inputs"]  # may be left out
    assert all(errors("profile", changed) for changed in mutations(document))
    assert errors("profile", document | {"values": document["values"] | {"wait.issue": -1}})


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.long)])
@pytest.mark.slow
def test_the_metadata_of_every_stored_trace_of_this_version(every: bool) -> None:
    left_out = frozenset() if every else frozenset(RECORDINGS) - one_of_each(RECORDINGS)
    folder = trace_folder()
    paths = [path for path in sorted(folder.rglob("*.parquet")) if str(path.relative_to(folder)) not in left_out]
    stored = [json.loads(pq.read_schema(path).metadata[b"pipesim"]) for path in paths]
    latest = max(document["schema"] for document in stored)
    newest = [document | {"schema": SCHEMA_VERSION} for document in stored if document["schema"] == latest]
    assert len(newest) >= 3
    assert [wrong for document in newest if (wrong := errors("trace-metadata", document))] == []


def test_the_metadata_of_a_trace_that_is_written_today(tmp_path: Path) -> None:
    path = tmp_path / "trace.parquet"
    pipesim.write_trace(pipesim.simulate("producer_consumer", tiles=4).trace, path)
    document = json.loads(pq.read_schema(path).metadata[b"pipesim"])
    assert errors("trace-metadata", document) == []
    assert all(errors("trace-metadata", changed) for changed in mutations(document))


def mutations(document: Any) -> Iterator[Any]:
    """The document with a member lacking, one too many, or one of another type: at its top and in its report."""
    for name in document:
        without = dict(document)
        del without[name]
        if name != "error" or "report" not in document:  # of verify: only there if evidence is missing
            yield without
        yield document | {name: [1] if isinstance(document[name], dict) else {"another": "type"}}
    yield document | {"unknown": 1}
    if isinstance(document.get("report"), dict):
        for changed in mutations(document["report"]):
            yield document | {"report": changed}
