"""The text of the lines that a kernel's PTX names is shown wherever pipesim was started; other files' text is not."""

import json
import linecache
import shutil
from contextvars import ContextVar
from pathlib import Path

import pytest

import pipesim
from pipesim.answers.check import check
from pipesim.api.export import counterexample_page
from pipesim.cli.main import main
from pipesim.ptx import source_files
from pipesim.ptx.source_files import current_sources, enter_sources, lines_read_from
from pipesim.report.text.source import text_of
from pipesim.targets import find
from tests.support.paths import EXAMPLES


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another folder than that of the kernels, and nothing left in the cache of lines or of another kernel."""
    monkeypatch.setattr(linecache, "cache", {})
    monkeypatch.setattr(source_files, "_current", ContextVar("source files of a test", default=None))
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    monkeypatch.chdir(folder)


def kernel(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    for suffix in ("cu", "ptx", "json"):
        shutil.copy(EXAMPLES / f"row_max.{suffix}", folder)
    return folder / "row_max.ptx"


def test_beside_the_ptx_and_from_another_folder(tmp_path: Path) -> None:
    find(str(kernel(tmp_path / "kernels")))
    assert text_of("row_max.cu:49") == "wait(s.empty[stage], lap % 2 ^ 1);"
    assert "mbarrier.try_wait" in text_of("row_max.ptx:266")
    assert text_of("other.cu:49") == ""


@pytest.mark.slow
def test_the_page_of_a_counterexample_has_them(tmp_path: Path) -> None:
    target = find(str(kernel(tmp_path / "kernels")))
    report = check(target, {})
    page = counterexample_page(target.build({}), report, report.refutations[0])
    assert page.sources is not None
    assert [text.strip() for n, text in page.sources["row_max.cu:49"] if n == 49] == [
        "wait(s.empty[stage], lap % 2 ^ 1);"
    ]
    assert any("wait(s.full[stage], lap % 2);" in line for line in page.report)


def test_without_its_source_a_place_stands_alone(tmp_path: Path) -> None:
    ptx = kernel(tmp_path / "kernels")
    ptx.with_suffix(".cu").unlink()
    find(str(ptx))
    assert text_of("row_max.cu:49") == ""


def test_a_ptx_names_no_file_that_is_not_code(tmp_path: Path) -> None:
    (tmp_path / "secrets.txt").write_text("word\n")
    (tmp_path / "folder.cu").mkdir()
    enter_sources(tmp_path / "k.ptx", ["secrets.txt", "folder.cu", "no\0name.cu", "/dev/zero"])
    assert [text_of(f"{name}:1") for name in ("secrets.txt", "folder.cu", "zero")] == ["", "", ""]
    entered = current_sources()
    assert entered is not None
    assert set(entered.paths) == {"k.ptx"}
    assert linecache.cache == {}


@pytest.mark.parametrize("name", ["notes.cu", "docs/examples/row_max.cu"])
def test_a_link_to_another_file_is_named_and_not_quoted(tmp_path: Path, name: str) -> None:
    """What counts is the file behind the link: what kind it is, and where it lies."""
    ptx = kernel(tmp_path / "kernels")
    source = ptx.with_suffix(".cu").rename(tmp_path / "row_max.cu")
    ptx.write_text(ptx.read_text().replace("docs/examples/row_max.cu", name))
    link = ptx.parent / name.rpartition("/")[2]
    for behind, text in ((Path("/proc/self/environ"), ""), (source, ""), (ptx.parent / "real.cu", "wait(s.empty")):
        link.unlink(missing_ok=True)
        if text:
            shutil.copy(source, behind)
        link.symlink_to(behind)
        find(str(ptx))
        assert text_of(f"{link.name}:49").startswith(text), behind
        assert bool(text_of(f"{link.name}:49")) == bool(text)


@pytest.mark.slow
def test_a_source_elsewhere_needs_its_folder_as_a_root(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ptx = kernel(tmp_path / "kernels")
    (tmp_path / "library").mkdir()
    source = ptx.with_suffix(".cu").rename(tmp_path / "library/row_max.cu")
    option = f"--source-root {source.parent}"
    for spelled in (str(source), "../library/row_max.cu"):
        ptx.write_text((EXAMPLES / "row_max.ptx").read_text().replace("docs/examples/row_max.cu", spelled))
        line = ["check", str(ptx), "--quick"]
        said = []
        for more in ([], ["--source-root", str(tmp_path / "library")], ["--source-root", str(tmp_path / "kernels")]):
            assert main([*line, *more]) == 1
            out = " ".join(capsys.readouterr().out.split())
            hint = f"not quoted: row_max.cu lies outside the folders of sources, which this allows: {option}"
            said.append(("wait(s.empty[stage], lap % 2 ^ 1);" in out, out.count(hint)))
        assert said == [(False, 1), (True, 0), (False, 1)]


def test_a_flat_program_quotes_no_file_of_another_folder(tmp_path: Path) -> None:
    """Its places have whole paths."""
    source = tmp_path / "library/kernel.cu"
    source.parent.mkdir()
    source.write_text("the word\n")
    assert text_of(f"{source}:1") == ""
    shutil.copy(source, Path.cwd())
    assert text_of(f"{Path.cwd()}/kernel.cu:1") == text_of("kernel.cu:1") == "the word"


def renamed(ptx: Path, text: str) -> Path:
    """A kernel whose line 49 of the source says something else; the number and the file's name are the same."""
    source = ptx.with_suffix(".cu")
    lines = source.read_text().split("\n")
    lines[48] = f"    wait({text});"
    source.write_text("\n".join(lines))
    return ptx


@pytest.mark.slow
def test_two_kernels_of_one_process_have_lines_of_their_own(tmp_path: Path) -> None:
    """Whichever is read, and shown, first; also a finding that is taken from the first after the second was read."""
    first, second = (renamed(kernel(tmp_path / name), name) for name in ("one", "two"))
    shown = [pipesim.check(str(path), quick=True) for path in (first, second)]
    for result, mine, other in ((shown[1], "two", "one"), (shown[0], "one", "two"), (shown[1], "two", "one")):
        (finding,) = result.findings
        for text in (str(result), str(finding), result._repr_html_(), finding._repr_html_()):
            assert f"wait({mine});" in text
            assert f"wait({other});" not in text
    assert text_of("row_max.cu:49") == "wait(two);", "the last that was read is the current one"


@pytest.mark.slow
def test_the_command_shows_each_of_two_kernels_with_its_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All are read before the first is checked."""
    paths = [str(renamed(kernel(tmp_path / name), name)) for name in ("one", "two")]
    assert main(["check", *paths, "--quick"]) == 1
    out = capsys.readouterr().out
    assert out.count("wait(one);") == out.count("wait(two);") == 1
    assert out.index("wait(one);") < out.index("wait(two);")


@pytest.mark.sampled(1, 2)
@pytest.mark.parametrize("form", ["github", "junit", "sarif"])
def test_other_tools_get_the_lines_and_the_paths_of_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    """An annotation names the file as the repository has it: its last name alone would be none of its files."""
    monkeypatch.chdir(tmp_path)
    paths = [str(renamed(kernel(tmp_path / name), name).relative_to(tmp_path)) for name in ("one", "two")]
    assert main(["check", *paths, "--quick", "--format", form]) == 1
    out = capsys.readouterr().out
    assert out.count("wait(one);") == out.count("wait(two);") == 1
    match form:
        case "github":
            assert [line.partition(",line")[0] for line in out.splitlines() if line.startswith("::error")] == [
                "::error file=one/row_max.cu",
                "::error file=two/row_max.cu",
            ]
        case "sarif":
            results = json.loads(out)["runs"][0]["results"]
            places = [each["locations"][0]["physicalLocation"]["artifactLocation"] for each in results]
            assert places == [{"uri": f"{name}/row_max.cu", "uriBaseId": "%SRCROOT%"} for name in ("one", "two")]


def test_a_table_is_current_inside_its_block_alone(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "k.cu").write_text(f"of {name}\n")
    enter_sources(tmp_path / "a" / "k.ptx", ["k.cu"])
    of_a = current_sources()
    enter_sources(tmp_path / "b" / "k.ptx", ["k.cu"])
    with lines_read_from(of_a):
        assert text_of("k.cu:1") == "of a"
        with lines_read_from(None):
            assert text_of("k.cu:1") == ""
        assert text_of("k.cu:1") == "of a"
    assert text_of("k.cu:1") == "of b"
