"""``capture_launches`` and the fixture of pytest, with an observer that writes prepared records."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pipesim
from pipesim.errors import OutputExistsError, ParameterError
from pipesim.launches import capture, observe
from pipesim.launches.observe.limits import Limits
from pipesim.model.finding import Verdict
from tests.support.documents import faults
from tests.support.observation import PTX, Observation
from tests.support.paths import ROOT


@pytest.fixture
def observed(monkeypatch: pytest.MonkeyPatch) -> list[Observation]:
    """Every observation that is started."""
    found: list[Observation] = []

    def start(spool: Path, limits: Limits, _: str) -> Observation:
        found.append(Observation(spool, limits))
        return found[-1]

    monkeypatch.setattr(observe, "start", start)
    return found


def test_what_was_launched_in_the_block(
    tmp_path: Path, observed: list[Observation], capsys: pytest.CaptureFixture[str]
) -> None:
    with pipesim.capture_launches(tmp_path / "out", kernels=["scale*"], once=True, max_launches=7) as captured:
        assert repr(captured) == f"<CapturedLaunches {tmp_path / 'out'}: capturing>"
        assert not (tmp_path / "out").exists()
    (one,) = observed
    assert (one.limits, one.stopped, one.spool.exists()) == (Limits(("scale*",), True, 7), 1, False)
    (launch,) = captured.launches
    assert (launch.kernel, launch.origin, launch.reason, launch.verdict) == ("scale_ws", "Triton", "", None)
    assert (launch.ptx, launch.launch) == (captured.folder / "scale_ws.ptx", captured.folder / "scale_ws.json")
    assert launch.ptx is not None
    assert launch.ptx.read_text(encoding="utf-8") == PTX.read_text(encoding="utf-8")
    assert (captured.folder / "launches.json").is_file()
    assert repr(captured) == f"<CapturedLaunches {tmp_path / 'out'}: 1 launch file>"
    assert "scale_ws.json" in str(captured)
    assert capsys.readouterr() == ("", "")


@pytest.mark.slow
def test_verdicts_in_the_block_end_the_capture(tmp_path: Path, observed: list[Observation]) -> None:
    with pipesim.capture_launches(tmp_path / "out") as captured:
        verdicts = captured.check()
        assert observed[0].stopped == 1
        captured.stop()
    assert observed[0].stopped == 1
    assert verdicts.all_proved
    assert verdicts
    assert [each.verdict for each in verdicts.launches] == [Verdict.PROVED, None]
    assert (verdicts.refuted, verdicts.unknown) == ((), ())
    assert repr(verdicts) == "<LaunchVerdicts 1 proved>"
    assert "✓ 1 launch: 1 proved" in str(verdicts)
    document = json.loads(verdicts.to_json())
    assert document["exit_code"] == 0
    assert faults("launches", document) == []


def test_what_is_not_proved_is_named(
    tmp_path: Path, observed: list[Observation], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pipesim.capture_launches(tmp_path) as captured:
        pass
    monkeypatch.setattr(capture, "check_launch", lambda *_, **__: (Verdict.REFUTED, "refuted: scale_ws: deadlock"))
    verdicts = captured.check()
    assert not verdicts.all_proved
    assert not verdicts
    assert [each.said for each in verdicts.refuted] == ["refuted: scale_ws: deadlock"]
    assert repr(verdicts) == "<LaunchVerdicts 1 refuted; refuted: scale_ws: deadlock>"


def test_without_a_launch_nothing_is_proved(tmp_path: Path, observed: list[Observation]) -> None:
    with pipesim.capture_launches(tmp_path, kernels=("nothing*",)) as captured:
        pass
    verdicts = captured.check()
    assert (verdicts.all_proved, verdicts.launches, repr(verdicts)) == (False, (), "<LaunchVerdicts no launch>")


def test_what_cannot_be_captured(tmp_path: Path, observed: list[Observation]) -> None:
    (tmp_path / "mine").write_text("")
    with pytest.raises(OutputExistsError), pipesim.capture_launches(tmp_path):
        pass
    with pytest.raises(ParameterError, match="kernels is one text"), pipesim.capture_launches("x", kernels="k"):
        pass
    with pytest.raises(ParameterError, match="a limit of 0 launches"), pipesim.capture_launches("x", max_launches=0):
        pass
    assert observed == []
    with pipesim.capture_launches(tmp_path, force=True):
        pass
    assert (tmp_path / "mine").is_file()


OBSERVER = """
import os
from pipesim.errors import MissingExtraError
from pipesim.launches import capture, observe
from pipesim.model.finding import Verdict
from tests.support.observation import Observation

def start(*given):
    if "refused" in os.environ["PYTEST_CURRENT_TEST"]:
        raise MissingExtraError("CUPTI is not installed")
    return Observation(*given[:2])

observe.start = start
capture.check_launch = lambda *_, **__: (Verdict.PROVED, "proved")
"""
TESTS = """
def test_right(captured_launches):
    assert captured_launches.check().all_proved

def test_wrong(captured_launches):
    assert not captured_launches.check().all_proved

def test_refused(captured_launches):
    raise AssertionError
"""


@pytest.mark.slow
class TestFixture:
    """In a pytest of its own, whose observer writes prepared records."""

    @pytest.fixture
    def run(self, tmp_path: Path) -> Callable[[str, str], tuple[int, str]]:
        def run(observer: str, test: str) -> tuple[int, str]:
            (tmp_path / "conftest.py").write_text(observer, encoding="utf-8")
            (tmp_path / "test_mine.py").write_text(test, encoding="utf-8")
            plugins = ["-p", "pipesim.pytest_plugin", "-p", "no:cacheprovider"]
            line = [sys.executable, "-m", "pytest", "-q", "-rs", *plugins, "test_mine.py"]
            environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_ADDOPTS": ""}
            environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # the others take longer to load than the tests run
            answer = subprocess.run(line, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
            return answer.returncode, answer.stdout

        return run

    def test_a_test_asserts_of_its_launches_and_is_skipped_without_cupti(self, run: Any) -> None:
        code, said = run(OBSERVER, TESTS)
        assert code == 1
        assert " test_wrong " in said
        assert "where True = <LaunchVerdicts 1 proved>.all_proved" in said
        assert "launches cannot be captured: CUPTI is not installed" in said
        assert "1 failed, 1 passed, 1 skipped" in said

    def test_a_test_that_does_not_ask_for_it_costs_nothing(self, run: Any) -> None:
        text = (
            "import sys\n\ndef test_k():\n    assert not [name for name in sys.modules if name == 'pipesim.targets']\n"
        )
        assert run("", text)[0] == 0


def test_the_plugin_is_registered() -> None:
    import tomllib

    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert settings["project"]["entry-points"]["pytest11"] == {"pipesim": "pipesim.pytest_plugin"}


class TestNotebook:
    PATH = ROOT / "docs" / "examples" / "launches.ipynb"

    def cells(self) -> list[dict[str, Any]]:
        notebook = json.loads(self.PATH.read_text(encoding="utf-8"))
        assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
        assert len({cell["id"] for cell in notebook["cells"]}) == len(notebook["cells"])
        cells: list[dict[str, Any]] = notebook["cells"]
        return cells

    @pytest.mark.slow
    def test_what_it_does_with_a_capture_works(
        self, tmp_path: Path, observed: list[Observation], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Its cells after the kernel's, with the prepared records in place of the launch."""
        monkeypatch.chdir(tmp_path)
        code = {cell["id"]: "".join(cell["source"]) for cell in self.cells() if cell["cell_type"] == "code"}
        names: dict[str, Any] = {"launch": lambda: None}
        for cell in ("capture", "files", "verdicts", "one"):
            exec(code[cell], names)  # the project's own notebook
        assert names["verdicts"].all_proved
