"""Every public name is in a table of docs/pipelines.md; every example of docs/vocabulary.md records what it says."""

import re
import textwrap
from typing import Any

import pytest

import pipesim.pipelines
from pipesim.lang.shared_mem_barrier import SharedMemBarrier
from pipesim.lang.warp import Warp
from pipesim.model.ops import OPERANDS, Op, Operation
from pipesim.model.program import Program
from pipesim.pipelines.common.register_value import MODULAR_PIPELINES
from pipesim.protocols.catalog import BUILT_IN
from pipesim.targets import find
from pipesim.trace.library import stored_traces
from tests.support.exported import exported
from tests.support.paths import ROOT, TRACES

TABLES, VOCABULARY = ((ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("pipelines.md", "vocabulary.md"))
FRAME, *EXAMPLES = re.findall(r"^```python\n(.*?)^```", VOCABULARY, re.DOTALL | re.MULTILINE)
ROWS = re.findall(r"^\| `(\w+)` \|(.*)\|$", TABLES, re.MULTILINE)
#: What a role can call that the page shows no example of: the same with another order, or a rarer form.
LEFT_OUT = {
    "expect_bytes_relaxed", "test_state", "pending_count", "arrive_no_complete", "complete_transaction", "inval",
}  # fmt: skip


def recorded(example: str) -> Program:
    """The flat program of the page's frame with an example in its role."""
    body = textwrap.indent(example, "        ").lstrip()
    namespace: dict[str, Any] = {}
    exec(compile(FRAME.replace("EXAMPLE", body), "docs/vocabulary.md", "exec"), namespace)  # the page itself
    made: Program = namespace["words"]().flatten()
    return made


def role_of(program: Program) -> list[Operation]:
    """What warp 0 of CTA 0 does after the prologue."""
    code = program.code[0]
    begin = next(pc for pc, op in enumerate(code) if op[0] == Op.CLUSTER_WAIT)
    return list(code[begin + 1 :])


def told(op: Operation, claim: str) -> str:
    """An operation with the operands that the claim speaks of, as the claim writes them."""
    operands: dict[str, int] = dict(zip(OPERANDS[Op(op[0])], op[1:], strict=True))
    return " ".join([Op(op[0]).name, *(f"{name} {operands[name]}" for name in claim.split()[1::2])])


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_records_what_it_says(example: str) -> None:
    claims = example.rpartition("# → ")[2].strip().split(" · ")
    assert [told(op, claim) for op, claim in zip(role_of(recorded(example)), claims, strict=True)] == claims


def test_every_public_name_has_one_row() -> None:
    assert sorted(name for name, _ in ROWS) == sorted(exported(pipesim.pipelines))


def test_every_method_that_a_row_names_exists() -> None:
    other = {"full", "empty", "use_clc_fetch", *exported(pipesim.pipelines)}  # barriers, a parameter, "as that struct"
    for name, row in ROWS:
        does = " ".join(row.split(" | ")[1:])
        for method in set(re.findall(r"`(\w+)(?:\(\w*\))?`", does)) - other:
            assert hasattr(getattr(pipesim.pipelines, name), method), f"{name}: {method}"


@pytest.mark.parametrize("kind", [Warp, SharedMemBarrier])
def test_every_word_has_an_example(kind: type) -> None:
    words = {name for name, value in vars(kind).items() if callable(value) and not name.startswith("_")}
    assert {word for word in words if f".{word}(" not in VOCABULARY} <= LEFT_OUT


@pytest.mark.slow
def test_the_table_of_recordings_has_each_struct_with_its_protocols() -> None:
    rows = re.findall(
        r"^\| (\w+) \| (.*) \| (.*) \|$", TABLES.partition("## Where each struct is recorded")[2], re.MULTILINE
    )
    said = {struct: tuple(set(re.findall(r"\[(\w+)\]", cell)) for cell in cells) for struct, *cells in rows[1:]}
    using = {name: set(find(name).build().pipelines) for name in BUILT_IN}
    recorded = {trace.meta.protocol for trace in stored_traces(TRACES)}
    for struct in MODULAR_PIPELINES:
        users = {name for name, structs in using.items() if struct in structs}
        assert said.pop(struct) == (users & recorded, users - recorded)
        assert users & recorded, f"{struct} has no recorded kernel"
    assert said == {}
