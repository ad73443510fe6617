"""A name that means harm is text, and nothing else, in every language that pipesim writes: one function of each
exporter quotes them.
"""

import io
import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

import pipesim
from hwkernels.source_recorder.table_file import Variant, table_text
from pipesim.answers.check import check
from pipesim.answers.views.check import CheckReport
from pipesim.bounds import MAX_NAME
from pipesim.cli.main import main
from pipesim.errors import ConfigurationError, UsageError
from pipesim.formats.promela import search_depth, to_promela
from pipesim.inputs import quoted_name
from pipesim.model.ops import Op
from pipesim.model.program import Program
from pipesim.model.program_json import dumps
from pipesim.report.pages.checks.check import check_lines
from pipesim.report.pages.checks.sarif import github_lines
from pipesim.report.text.console import make_console, paint, text_of
from pipesim.report.text.words import inert_text
from pipesim.targets import target_of
from pipesim.trace.library import trace_name
from pipesim.trace.schema import Device, TraceMeta
from pipesim.trace.sites import site_table
from tests.support.hostile_names import HOSTILE, MARK, hostile
from tests.support.lanes import long_but, slow_but
from tests.support.mistakes.ring import right_ring
from tests.support.promela_examples import cluster, matrix, ring
from tools import judge_spin

FAST = [HOSTILE[kind] for kind in ("nested", "markup", "github", "escape sequences")]
BOTH = [*FAST, *(HOSTILE[kind] for kind in ("promela", "C header", "shell", "option"))]
LANES = long_but(BOTH, slow_but(FAST, HOSTILE.values()))
pytestmark = pytest.mark.parametrize("name", LANES, ids=list(HOSTILE))
needs_spin = pytest.mark.skipif(bool(judge_spin.available()), reason=judge_spin.available() or "it is here")

COMMANDS = ("##[", "##vso[", "##teamcity[")


def is_inert(text: str) -> bool:
    """True if no line of it is a command of a CI system, and none has a character that a terminal obeys."""
    return all(
        line.isprintable() and not line.lstrip().startswith("::") and not any(word in line for word in COMMANDS)
        for line in text.split("\n")
    )


def refuted(name: str) -> CheckReport:
    """The report on a program in which the consumer never arrives, with the name everywhere."""
    return check(target_of(hostile(name, wrong_ring())), {}, quick=True)


def wrong_ring() -> Program:
    program = ring()
    consumer = tuple(op for op in program.code[1] if op[0] != Op.ARRIVE)
    code = (program.code[0], consumer)
    return replace(program, code=code, lines=tuple((0,) * len(agent) for agent in code))


# Promela


def without_comments(model: str) -> str:
    """A model as a C compiler and SPIN see it: a comment ends where it first can."""
    return re.sub(r"/\*.*?\*/", " ", model, flags=re.DOTALL)


@pytest.mark.parametrize("example", [ring, cluster, matrix])
def test_a_promela_model_has_them_in_comments_alone(name: str, example: Callable[[], Program]) -> None:
    tame, text = to_promela(example()), to_promela(hostile(name, example()))
    assert text.isascii()
    assert not re.search(r"[^\n -~]|\\\n", text)
    assert "/*" not in without_comments(text)
    roles = re.compile(r"proctype a(\d+)_\w*")
    assert roles.sub(r"\1", without_comments(text)).split() == roles.sub(r"\1", without_comments(tame)).split()
    assert max(map(len, roles.findall(text))) <= 48


@needs_spin
@pytest.mark.slow
@pytest.mark.parametrize("preprocessor", [[], ["-Pcat"]], ids=["cpp", "cat"])
def test_spin_builds_the_model_and_nothing_of_a_name_runs(name: str, preprocessor: list[str], tmp_path: Path) -> None:
    """By the steps that the model's first lines name, with a C compiler's preprocessor and without."""
    program = hostile(name)
    (tmp_path / "model.pml").write_text(to_promela(program), encoding="utf-8")
    for command in (
        ["spin", *preprocessor, "-a", "model.pml"],
        [shutil.which("tcc") or "gcc", "-DSAFETY", "-w", "-o", "pan", "pan.c"],
        ["./pan", f"-m{search_depth(program)}"],
    ):
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60)
    assert "errors: 0" in done.stdout
    assert not (tmp_path / MARK).exists()


# C: the table that a kernel includes


def test_a_table_has_names_that_c_has_or_is_refused(name: str) -> None:
    program = hostile(name, right_ring(1, 2).flatten())
    if f"{name}0".isidentifier() and len(name) < MAX_NAME:
        assert f"PIPESIM_ROLE({name}0, 1)" in table_text([Variant({}, site_table(program))])
        return
    with pytest.raises(ConfigurationError, match="cannot be written into a table") as refused:
        table_text([Variant({}, site_table(program))])
    assert quoted_name(f"{name}0") in str(refused.value)


# SVG, HTML, XML


def shape(svg: str) -> set[str]:
    """The kinds of elements and of attributes of a picture."""
    elements = list(ET.fromstring(svg).iter())
    return {f"tag {each.tag}" for each in elements} | {name for each in elements for name in each.attrib}


def test_a_picture_has_the_same_elements_whatever_the_names_are(name: str) -> None:
    svg = pipesim.show(hostile(name)).svg()
    assert shape(svg) <= shape(pipesim.show(hostile("tame")).svg())
    assert inert_text(svg).replace("# #", "##") == svg, "and is text without control characters"


class Tags(HTMLParser):
    """Collects what a browser would make elements of."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found |= {tag, *(attribute for attribute, _ in attrs)}


def test_html_has_the_elements_of_a_result(name: str) -> None:
    for result in (pipesim.show(hostile(name)), pipesim.simulate(hostile(name)), pipesim.check(hostile(name))):
        assert Tags(result._repr_html_()).found <= {"div", "pre", "style", "p", "img", "alt", "src"}


# CI systems and terminals


def test_an_annotation_is_one_line_of_github(name: str) -> None:
    """What the runner splits a command at stands in no value; the message is what the report says, in one line."""
    lines = github_lines({name: refuted(name)}, {f"{name}2": UsageError(name, place=f"{name}:3")})
    commands = [line for line in lines if line.startswith("::")]
    assert [line.split(" ")[0] for line in commands] == ["::error", "::error"]
    for line in commands:
        assert "\n" not in line
        assert "\r" not in line
        properties = line.partition(" ")[2].partition("::")[0]
        names = [each.partition("=")[0] for each in properties.split(",")]
        assert names in (["file", "line", "title"], ["title"])
    assert all(is_inert(line) for line in lines if line not in commands)


@pytest.mark.sampled(2, 4)
def test_a_report_is_text_and_its_json_reads_back(name: str) -> None:
    report = refuted(name)
    lines = check_lines(report, 80)
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="utf-8", write_through=True)  # it would close what it writes into
    paint(make_console(stream), lines)
    assert is_inert(raw.getvalue().decode())
    assert is_inert(text_of(lines))
    found = pipesim.check(hostile(name, wrong_ring()))
    assert is_inert(str(found))
    text = found.to_json()
    assert text.isascii()
    assert is_inert(text)
    assert json.loads(text)["report"]["heading"]["protocol"] == name


# files


def test_a_trace_is_stored_in_the_folder_of_its_device(name: str) -> None:
    meta = TraceMeta("hardware", name, {name: 3, f"{name}2": 1}, 1, Device(name), (), (), (), fault=name, clock=name)
    found = trace_name(meta)
    assert re.fullmatch(r"[a-z0-9-]+/[A-Za-z0-9_.-]+\.parquet", found)
    assert Path(found).parts[0] not in ("..", ".")


@pytest.mark.sampled(2, 4)
def test_the_commands_end_as_they_should(name: str, tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    """A file with such names, through every command that reads one: answers or refuses, and prints text."""
    monkeypatch.chdir(tmp_path)
    Path("p.json").write_text(dumps(hostile(name, wrong_ring())), encoding="utf-8")
    for line in ("check p.json --quick", "check p.json --quick --format junit", "run p.json", "show p.json --svg p.svg",
                 "table p.json", "show p.json --json"):  # fmt: skip
        code = main(shlex.split(line))
        printed = capsys.readouterr()
        assert code in (0, 1, 2), line
        assert is_inert(printed.out), line
        assert is_inert(printed.err), line
    assert not Path(MARK).exists()
