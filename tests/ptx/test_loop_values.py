"""The condition that led past an arrive, and the variables of the loops around it: right ones, or none."""

from pathlib import Path

import pytest

from pipesim.answers.checking.counterexample import led_past_of
from pipesim.prove.check import check
from pipesim.ptx.loop_values import value_of
from pipesim.ptx.names.cpp_text import CppText, step_of
from pipesim.ptx.names.python_text import PythonText
from pipesim.report.findings.finding import led_past_words
from pipesim.targets import find

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"
FOR, IF, TILES = "int row = blockIdx.x; row < rows;", "if (first >= left) continue;", "begin += kTile, ++tile"
COMES = ", since 512 >= 256, the 2nd time it came there"
SINCE = ", since `first >= left` was true (512 >= 256)"
BOTH = " at row = 0 and begin = 1,024"

#: What is changed in the source: the text is no evidence then, or the outcome is another one; and what is said.
CASES: dict[str, tuple[str, str, str]] = {
    "as it is": (IF, IF, SINCE + BOTH),
    "another step": (TILES, "begin += 512, ++tile", f"{SINCE} at row = 0"),
    "another start": (FOR, FOR.replace("= b", "= 1 + b"), f"{SINCE} at begin = 1,024"),
    "a step that is not known": (TILES, "begin += size, ++tile", f"{SINCE} at row = 0"),
    "a variable that changes elsewhere": ("__syncwarp();", "begin += 0;", f"{SINCE} at row = 0"),
    "a loop more than the kernel has": ("  // of all rows of this CTA", "while (rows)", f"{SINCE}, {COMES[-26:]}"),
    "the opposite condition": (IF, "if (first < left) continue;", COMES),
    "a condition that does not lead past it": (IF, "if (first >= left) left = 0;", COMES),
    "one that cannot be computed": (IF, "if (f(first)) continue;", SINCE.replace("first >= left", "f(first)") + BOTH),
    "two": (IF, "if (first >= left || rows == 3) continue;", SINCE.replace("left`", "left || rows == 3`") + BOTH),
}

PYTHON = {
    43: "    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0)):",
    45: "        for begin in range(0, n, 1024):",
    47: "            if warp == 0: continue",
    56: "            if first >= left: continue",
    60: "            if lane == 0: arrive(empty[stage])",
}


def said_of(source: str, folder: Path, name: str = "row_max.cu") -> str:
    """What is said of the branch of the example's kernel, after its line, with another text of its source."""
    (folder / name).write_text(source)
    (folder / "row_max.json").write_bytes((EXAMPLES / "row_max.json").read_bytes())
    text = (EXAMPLES / "row_max.ptx").read_text().replace("docs/examples/row_max.cu", str(folder / name))
    (folder / "row_max.ptx").write_text(text.replace("row_max.cu", name))
    target = find(str(folder / "row_max.ptx"))
    (refuted,) = check(target.build()).refutations
    ((past, _),) = led_past_of(target.build(), refuted, target.editable)
    return led_past_words(past).partition(":60)")[2]


@pytest.mark.sampled(3, 4)
@pytest.mark.parametrize("name", CASES)
def test_the_variables_of_the_loops_are_named_where_the_text_is_evidence(name: str, tmp_path: Path) -> None:
    before, after, said = CASES[name]
    source = (EXAMPLES / "row_max.cu").read_text()
    assert source.count(before) == 1
    assert said_of(source.replace(before, after), tmp_path) == said


@pytest.mark.slow
def test_python_is_read_as_well(tmp_path: Path) -> None:
    lines = [
        PYTHON.get(n, "@triton.jit" if n == 1 else "def row_max(rows, n):" if n == 2 else "") for n in range(1, 61)
    ]
    assert said_of("\n".join(lines), tmp_path, "row_max.py") == f"{SINCE}{BOTH}"


VALUES = {"a": 5, "b": 7, "blockIdx_x": 3, "program_id_0": 2, "none": None}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a + b * 2", 19), ("a < b && !(a == 3)", 1), ("a > b || b > 9u", 0), ("min(a, b - 1) / 2u", 2),
        ("-7 / 2 + a", 2), ("static_cast<int>(a)", 5), ("blockIdx.x + 1", 4), ("tl.program_id(0) * 4", 8),
        ("none + 1", None), ("a[b]", None), ("f(a)", None), ("a == b == 0", None), ("a & 4", 4), ("a / 0", None),
        ("a ** b", None), ("'a' * 9", None), ("", None), ("1.5 * a", None),
    ],
)  # fmt: skip
def test_an_expression_has_the_value_that_the_names_give_it(text: str, value: int | None) -> None:
    assert value_of(text, VALUES.get) == value


@pytest.mark.parametrize(
    "text",
    [
        "*".join(["big"] * 40),  # names of names of such products would take all memory
        "1 + " * 60 + "tile",  # longer than is computed: a part of it is another expression
        "().__class__", "print(1)", "min(*[1])", "min()", "tile if n else n", "'a'", "1.5 + tile", "(lambda: 1)()",
    ],
)  # fmt: skip
def test_of_another_text_no_value_is_known_and_nothing_is_run(text: str) -> None:
    assert value_of(text, {"tile": 3, "n": 9, "big": 1 << 62}.get) is None


def test_a_quotient_is_cut_off_as_in_cpp() -> None:
    assert [value_of(text, VALUES.get) for text in ("-7 / 2", "-7 % 2", "7 / -2")] == [-3, -1, -3]


def test_what_a_statement_adds_to_a_variable() -> None:
    changes = ("++i", "i++", "--i", "i += 4", "i -= n", "i", "j++", "i += 1; f()", "++i++", "i = 4")
    assert [step_of("i", each) for each in changes] == ["+1", "+1", "-1", "+(4)", "-(n)", "", "", "", "", ""]


CPP = """
void f(int n) {
    int tile = blockIdx.x, k = 0;
    while (tile < n) {
        if (tile == 3) { a(); } else b();
        for (int i = n - 1; i >= 0; i -= 2) { if (i == tile) break; c(); }
        for (auto& each : all) d();
        k += 1;
        tile += gridDim.x;
    }
    while (k < n) { ++k; e(); }
}
"""


def test_the_headings_of_a_text() -> None:
    text = CppText(CPP.split("\n"))
    found = {each.condition: each for each in text.headings(len(CPP))}
    assert [each[6:] for each in found.values() if each.loop] == [
        ("tile", "blockIdx.x", "+(gridDim.x)"), ("i", "n - 1", "-(2)"), ("", "", "")
    ]  # fmt: skip
    places = {name: CPP.index(name) for name in ("a();", "b();", "c();", "d();", "e();")}
    outcomes = {name: [found[of].outcome(at) for of in ("tile == 3", "i == tile")] for name, at in places.items()}
    assert [outcomes["a();"][0], outcomes["b();"][0], outcomes["c();"]] == [False, True, [None, True]]


def test_a_static_range_is_no_loop_of_the_kernel() -> None:
    text = PythonText(
        ["def f(n):", "    for i in tl.static_range(4):", "        for k in range(2, n, 3):", "            g(k)"]
    )
    assert [each[5:] for each in text.headings(0)] == [("k in range(2, n, 3)", "k", "2", "3")]
