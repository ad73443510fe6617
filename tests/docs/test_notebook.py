"""The example notebook runs, cell by cell, and shows what a notebook would: pictures, reports and tables."""

import ast
import json
from functools import cache
from typing import Any

import pytest

from tests.support.paths import ROOT

PATH = ROOT / "docs" / "examples" / "pictures.ipynb"


def cells() -> dict[str, str]:
    """The source of each cell of code, by its name."""
    notebook = json.loads(PATH.read_text(encoding="utf-8"))
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert all((cell["outputs"], cell["execution_count"]) == ([], None) for cell in code), "it is kept without outputs"
    return {cell["id"]: "".join(cell["source"]) for cell in code}


@cache
def shown() -> dict[str, Any]:
    """What each cell shows: the value of its last expression, as IPython takes it."""
    pytest.importorskip("pandas")
    names: dict[str, Any] = {}
    found = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT / "docs" / "examples")
        for cell, source in cells().items():
            tree = ast.parse(source, cell)
            last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
            exec(compile(tree, cell, "exec"), names)
            if last is not None:
                assert isinstance(last, ast.Expr)
                found[cell] = eval(compile(ast.Expression(last.value), cell, "eval"), names)
    return found


@pytest.mark.slow
def test_results_and_traces_are_pictures() -> None:
    for cell, words in (
        ("check", "deadlock · 2 of 2 agents wait indefinitely"),
        ("read", "hardware, NVIDIA H200 · finished"),
        ("simulation", "finished: no deadlock"),
    ):
        html = shown()[cell]._repr_html_()
        assert words in html
        assert html.count("data:image/svg+xml;base64,") == 1


def test_findings_and_steps_are_rows() -> None:
    findings = shown()["findings"]
    assert list(findings.kind) == ["deadlock"]
    assert findings.line[0].endswith("ring_forgets.py:20")
    assert set(shown()["steps"].agent) == {"load", "mma"}


def test_both_runs_have_the_same_events() -> None:
    both = shown()["beside"]
    assert list(both.columns) == ["agent", "site", "iteration", "cycle_measured", "cycle_simulated"]
    assert len(both) == 12
