"""Protocols and kernels as tests of pytest: what is collected, and what a failure shows."""

import shutil
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from pipesim.errors import ParameterError
from pipesim.model.coverage import Assumption, Strictness
from pipesim.pytest_plugin.items import Case, cases_of, launch_files
from tests.support.paths import ROOT

pytest_plugins = "pytester"
KERNELS = ROOT / "docs" / "examples"
PLUGIN = ("-p", "no:pipesim", "-p", "pipesim.pytest_plugin", "-p", "no:cacheprovider", "-p", "no:xdist")
RING = (ROOT / "docs" / "examples" / "ring_two.py").read_text(encoding="utf-8")
RIGHT = RING.replace("consumer_arrive_count=2", "consumer_arrive_count=1")
MARKED = RIGHT.replace("def ring(", "@pytest.mark.pipesim(tiles=[1, 5])\n@pytest.mark.xfail(strict=True)\ndef ring(")


def mark_of(**given: object) -> pytest.Mark:
    """The marker, also where pytest does not know it: the plugin may not be installed, and these tests are strict."""
    return pytest.Mark("pipesim", (), given, _ispytest=True)


@pytest.fixture
def files(pytester: pytest.Pytester) -> Path:
    """A project with a wrong protocol, a right one, and a file that is neither."""
    (pytester.path / "ring_protocol.py").write_text(RING, encoding="utf-8")
    (pytester.path / "right_protocol.py").write_text(RIGHT, encoding="utf-8")
    (pytester.path / "other.py").write_text("raise ValueError\n", encoding="utf-8")
    return pytester.path


@pytest.mark.usefixtures("files")
class TestProtocols:
    @pytest.mark.slow
    def test_are_tests_where_this_is_asked_for(self, pytester: pytest.Pytester) -> None:
        found = pytester.runpytest_inprocess(*PLUGIN, "--pipesim", "-v")
        found.assert_outcomes(passed=1, failed=1)
        found.stdout.fnmatch_lines(["right_protocol.py::ring PASSED*", "ring_protocol.py::ring FAILED*"])

    @pytest.mark.slow
    def test_are_none_where_it_is_not(self, pytester: pytest.Pytester) -> None:
        pytester.runpytest_inprocess(*PLUGIN).assert_outcomes()

    @pytest.mark.slow
    def test_are_tests_where_their_file_is_named(self, pytester: pytest.Pytester) -> None:
        pytester.runpytest_inprocess(*PLUGIN, "right_protocol.py").assert_outcomes(passed=1)
        pytester.runpytest_inprocess(*PLUGIN, "right_protocol.py::ring").assert_outcomes(passed=1)

    @pytest.mark.slow
    def test_a_failure_is_the_finding_the_verdict_first(self, pytester: pytest.Pytester) -> None:
        found = pytester.runpytest_inprocess(*PLUGIN, "ring_protocol.py", "--junitxml=j.xml")
        lines = found.outlines
        first = lines.index("refuted: ring: deadlock: 2 of 2 agents wait indefinitely (smallest: tiles 3)")
        assert lines[first - 1].strip("_ ") == "ring"
        assert "      ring_protocol.py:20    with pipe.produce() as stage:" in lines
        assert any("likely correction: initialise empty with a count of 1 instead of 2" in line for line in lines)
        assert "Traceback" not in str(found.stdout)
        found.stdout.fnmatch_lines(["FAILED ring_protocol.py::ring - refuted: ring: deadlock: *"])
        (failure,) = ET.parse(pytester.path / "j.xml").getroot().iter("failure")
        assert failure.attrib["message"].startswith("refuted: ring: deadlock: 2 of 2 agents wait")

    @pytest.mark.slow
    def test_a_waiver_of_the_project_holds(self, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
        shutil.copytree(ROOT / "tests" / "support" / "waived_project", pytester.path, dirs_exist_ok=True)
        (pytester.path / "ring_protocol.py").unlink()
        (pytester.path / "right_protocol.py").unlink()
        pytester.runpytest(*PLUGIN, "--pipesim").assert_outcomes(passed=5)
        with monkeypatch.context() as below:
            below.chdir(pytester.mkdir("below"))
            pytester.runpytest(*PLUGIN, "--pipesim", "..").assert_outcomes(passed=5)
        (pytester.path / "baseline.json").write_text(
            '{"schema": "pipesim-baseline", "version": 1, "findings": []}', encoding="utf-8"
        )
        pytester.runpytest(*PLUGIN, "--pipesim").assert_outcomes(passed=4, failed=1)

    @pytest.mark.slow
    def test_markers_give_parameters_and_are_those_of_the_tests(self, pytester: pytest.Pytester) -> None:
        (pytester.path / "right_protocol.py").write_text(f"import pytest\n{MARKED}", encoding="utf-8")
        found = pytester.runpytest_inprocess(*PLUGIN, "right_protocol.py", "-v", "--strict-markers")
        found.assert_outcomes(failed=2)
        found.stdout.fnmatch_lines(
            ["*::ring[[]tiles=1[]] FAILED*", "*::ring[[]tiles=5[]] FAILED*", "*[[]XPASS(strict)[]]*"]
        )

    @pytest.mark.slow
    def test_what_is_not_known_in_time_fails(self, pytester: pytest.Pytester) -> None:
        found = pytester.runpytest_inprocess(*PLUGIN, "right_protocol.py", "--pipesim-time-limit=1e-6")
        found.assert_outcomes(failed=1)
        found.stdout.fnmatch_lines(["FAILED right_protocol.py::ring - unknown: *"])

    @pytest.mark.parametrize("limit", ["0", "soon", "nan"])
    def test_a_limit_that_is_none(self, pytester: pytest.Pytester, limit: str) -> None:
        found = pytester.runpytest_inprocess(*PLUGIN, f"--pipesim-time-limit={limit}")
        assert "expected a number of seconds above 0" in str(found.stderr)

    @pytest.mark.sampled(0, 1)
    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("x = 1\n", "has no function that makes a protocol"),
            ("1 // 0\n", "cannot be imported: ZeroDivisionError"),
            ("import pytest\n" + RIGHT.replace("def ring(", "@pytest.mark.pipesim(2)\ndef ring("), "takes no 2"),
        ],
    )
    def test_a_file_without_a_protocol_is_an_error(self, pytester: pytest.Pytester, text: str, said: str) -> None:
        (pytester.path / "right_protocol.py").write_text(text, encoding="utf-8")
        found = pytester.runpytest_inprocess(*PLUGIN, "--pipesim", "--deselect", "ring_protocol.py")
        found.assert_outcomes(errors=1, deselected=1)
        assert said in str(found.stdout)

    @pytest.mark.slow
    def test_a_parameter_that_it_has_not_is_an_error_in_words(self, pytester: pytest.Pytester) -> None:
        text = RIGHT.replace("def ring(", "@pytest.mark.pipesim(tile=3)\ndef ring(")
        (pytester.path / "right_protocol.py").write_text(f"import pytest\n{text}", encoding="utf-8")
        found = pytester.runpytest_inprocess(*PLUGIN, "right_protocol.py")
        found.stdout.fnmatch_lines(["*has no parameter 'tile'", "  try: did you mean tiles[?]"])

    @pytest.mark.slow
    def test_what_is_collected_is_a_setting(self, pytester: pytest.Pytester) -> None:
        pytester.makeini("[pytest]\npipesim_files = right_*.py\naddopts = --pipesim\n")
        pytester.runpytest_inprocess(*PLUGIN).assert_outcomes(passed=1)


class TestKernels:
    @pytest.mark.slow
    def test_each_launch_is_a_test(self, pytester: pytest.Pytester) -> None:
        shutil.copy(KERNELS / "row_max.ptx", pytester.path / "right.ptx")
        for name, length in (("right.json", "2048"), ("right-2.json", "4096")):
            (pytester.path / name).write_text((KERNELS / "row_max.json").read_text().replace("1280", length))
        shutil.copy(KERNELS / "row_max.ptx", pytester.path / "without_a_launch.ptx")
        found = pytester.runpytest_inprocess(*PLUGIN, "--pipesim", "-v")
        found.assert_outcomes(passed=2)
        found.stdout.fnmatch_lines(["*.ptx::right PASSED*", "*.ptx::right-2 PASSED*"])
        pytester.makepyprojecttoml('[tool.pipesim.launch]\n"*.ptx" = "right.json"')
        found = pytester.runpytest_inprocess(*PLUGIN, "--pipesim", "--collect-only", "-qq")
        assert found.outlines[:2] == ["right.ptx: 1", "without_a_launch.ptx: 1"]

    @pytest.mark.slow
    def test_the_place_of_a_kernels_finding_is_a_file_that_is_there(
        self, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Its PTX lies in a folder below; the finding names the last part of the path alone."""
        monkeypatch.setattr("pipesim.answers.checking.failures.corrections_of", lambda *_: ())  # they take their time
        folder = pytester.path / "kernels"
        folder.mkdir()
        for name in ("row_max.ptx", "row_max.json", "row_max.cu"):
            shutil.copy(KERNELS / name, folder)
        found = pytester.runpytest_inprocess(*PLUGIN, "--pipesim", "--tb=line", "kernels")
        said = "49: refuted: row_max: deadlock: 3 of 3 agents wait indefinitely"
        found.stdout.fnmatch_lines([f"{folder / 'row_max.cu'}:{said}*"])

    @pytest.mark.slow
    def test_a_launch_file_that_is_missing_is_asked_for(self, pytester: pytest.Pytester) -> None:
        shutil.copy(KERNELS / "row_max.ptx", pytester.path / "k.ptx")
        found = pytester.runpytest_inprocess(*PLUGIN, "k.ptx")
        found.assert_outcomes(failed=1)
        assert "pipesim new --ptx k.ptx" in str(found.stdout)

    def test_launch_files_are_those_of_the_kernel(self, tmp_path: Path) -> None:
        for name in ("a.ptx", "a.json", "a-2.json", "a-10.json", "a-3.json", "a-3.ptx", "ab.json", "a-x.json"):
            (tmp_path / name).touch()
        assert [path.name for path in launch_files(tmp_path / "a.ptx")] == ["a.json", "a-2.json", "a-10.json"]
        assert [path.name for path in launch_files(tmp_path / "a-3.ptx")] == ["a-3.json"]


class TestCases:
    def test_one_for_each_combination(self) -> None:
        marks = [mark_of(stages=[1, 2], tiles=5, time_limit=0.5, strict=["init"])]
        shared = {"time_limit": 0.5, "strictness": Strictness({Assumption.INIT})}
        assert cases_of(marks) == [
            Case({"stages": 1, "tiles": 5}, **shared),  # type: ignore[arg-type]
            Case({"stages": 2, "tiles": 5}, **shared),  # type: ignore[arg-type]
        ]
        assert [case.name for case in cases_of(marks)] == ["stages=1-tiles=5", "stages=2-tiles=5"]

    def test_of_several_markers_all_of_none_the_defaults(self) -> None:
        several = [mark_of(tiles=n) for n in (1, 2, 1)]
        assert [case.params for case in cases_of([*several, pytest.Mark("slow", (), {}, _ispytest=True)])] == [
            {"tiles": 1},
            {"tiles": 2},
        ]
        assert cases_of([pytest.Mark("slow", (), {}, _ispytest=True)]) == [Case({})]

    @pytest.mark.parametrize(
        "wrong", [{"tiles": "5"}, {"tiles": [True]}, {"ctas": 0}, {"ctas": 1.5}, {"time_limit": 0}, {"max_states": "a"}]
    )
    def test_what_is_no_number(self, wrong: dict[str, object]) -> None:
        with pytest.raises(ParameterError, match="the marker pipesim: "):
            cases_of([mark_of(**wrong)])
