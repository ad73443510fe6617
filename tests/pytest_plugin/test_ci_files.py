"""The GitHub Action and the hooks of pre-commit: what they run is run here."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.paths import ROOT

RING = (ROOT / "docs" / "examples" / "ring_two.py").read_text(encoding="utf-8")
ACTION: Any = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
HOOKS: Any = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))


def run_step(folder: Path, inputs: dict[str, str], event: str = "push") -> subprocess.CompletedProcess[str]:
    """The last step of the action with these inputs, as a runner does it, in ``folder``."""
    step = ACTION["runs"]["steps"][-1]
    given = {name: str(each.get("default", "")) for name, each in ACTION["inputs"].items()} | inputs
    env = {
        name: re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda found: given[found[1]], value)
        for name, value in step["env"].items()
    }
    binary = str(Path(sys.executable).parent)
    path = {"PATH": f"{binary}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT), "GITHUB_EVENT_NAME": event}
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        env={**os.environ, **env, **path}, cwd=folder, check=False, capture_output=True, text=True, encoding="utf-8",
    )  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels" / "ring_protocol.py").write_text(RING, encoding="utf-8")
    return tmp_path


@pytest.mark.slow
def test_the_action_annotates_what_its_patterns_find_and_writes_sarif(folder: Path) -> None:
    inputs = {"targets": "**/*_protocol.py\n*.ptx", "options": "-p tiles=3", "sarif-file": "out.sarif"}
    found = run_step(folder, inputs)
    assert (found.returncode, found.stderr) == (1, "")
    error, correction, verdict = found.stdout.splitlines()
    assert error.startswith("::error file=kernels/ring_protocol.py,line=20,title=")
    assert correction.startswith("::notice file=kernels/ring_protocol.py,line=13,title=")
    assert verdict.startswith("✗ kernels/ring_protocol.py: refuted: ring fails in the schedule above, for every CTA")
    (run,) = json.loads((folder / "out.sarif").read_text(encoding="ascii"))["runs"]
    assert [result["ruleId"] for result in run["results"]] == ["deadlock"]


@pytest.mark.slow
def test_the_action_takes_the_targets_and_waivers_of_the_project(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "tests" / "support" / "waived_project", tmp_path, dirs_exist_ok=True)
    found = run_step(tmp_path, {"sarif-file": "out.sarif"})
    assert (found.returncode, found.stderr) == (0, "")
    said = [line.partition(",title=")[0] for line in found.stdout.splitlines() if line.startswith("::")]
    letter, unused = "::notice file=rings_protocol.py,line=82", "::warning file=rings_protocol.py,line=40"
    assert said == [letter, unused]
    (run,) = json.loads((tmp_path / "out.sarif").read_text(encoding="ascii"))["runs"]
    kinds = [each.get("suppressions", [{"kind": ""}])[0]["kind"] for each in run["results"]]
    assert kinds == ["external", "inSource", "external", ""]


@pytest.mark.slow
def test_an_input_of_the_action_is_data(folder: Path) -> None:
    found = run_step(folder, {"targets": "$(touch made) `touch made` ; touch made", "options": "--quick"})
    assert found.returncode == 2
    assert not (folder / "made").exists()


@pytest.mark.sampled(0, 2)
@pytest.mark.parametrize(
    ("event", "untrusted", "runs"),
    [("push", "auto", True), ("pull_request", "auto", True), ("pull_request_target", "auto", False),
     ("push", "true", False), ("pull_request_target", "false", True)],
)  # fmt: skip
def test_where_the_action_runs_no_protocol(folder: Path, event: str, untrusted: str, runs: bool) -> None:
    found = run_step(folder, {"targets": "kernels/*.py", "options": "--quick", "untrusted": untrusted}, event)
    assert ("is not run" in found.stderr) == (not runs)
    assert found.returncode == (1 if runs else 2)


@pytest.mark.slow
def test_a_name_is_no_option(tmp_path: Path) -> None:
    """And the kernel of a pull request is checked with --untrusted, which says the same of it."""
    for suffix in ("ptx", "json"):
        text = (ROOT / f"docs/examples/row_max.{suffix}").read_text(encoding="utf-8")
        (tmp_path / f"--sarif=x.{suffix}").write_text(text, encoding="utf-8")
    said = [run_step(tmp_path, {"targets": "*.ptx", "options": "--quick"}, event) for event in ("push", "pull_request")]
    assert [each.returncode for each in said] == [1, 1], said[0].stderr
    assert said[0].stdout == said[1].stdout
    assert "::error file=" in said[0].stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["--sarif=x.json", "--sarif=x.ptx"]


def test_the_steps_of_others_are_pinned() -> None:
    for text in ((ROOT / "action.yml").read_text(), (ROOT / ".github/workflows/ci.yml").read_text()):
        used = re.findall(r"uses: (\S+)", text)
        assert used
        assert [each for each in used if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", each)] == []


def test_no_script_of_the_action_has_an_input_in_it() -> None:
    scripts = [step["run"] for step in ACTION["runs"]["steps"] if "run" in step]
    assert len(scripts) == 2
    assert [script for script in scripts if "${{" in script] == []


@pytest.mark.parametrize(("number", "name", "matches"), [(0, "a/x_protocol.py", True), (0, "a/protocol.py", False),
                                                         (1, "k.ptx", True), (1, "k.ptx.txt", False)])  # fmt: skip
def test_the_hooks_take_these_files(number: int, name: str, matches: bool) -> None:
    assert bool(re.search(HOOKS[number]["files"], name)) is matches


@pytest.mark.slow
def test_the_hooks_run_a_command_that_there_is(folder: Path) -> None:
    (entry,) = {hook["entry"] for hook in HOOKS}
    words = [sys.executable, "-m", *shlex.split(entry), "kernels/ring_protocol.py"]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    found = subprocess.run(words, env=env, cwd=folder, check=False, capture_output=True, text=True, encoding="utf-8")
    assert (found.returncode, found.stderr) == (1, "")
    assert "✗ deadlock · 2 of 2 agents wait indefinitely" in found.stdout
