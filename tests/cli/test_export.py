"""``pipesim export``: a protocol's flat program in the language of SPIN's models."""

import sys
import webbrowser
from pathlib import Path

import pytest

from pipesim.formats.documents import document
from pipesim.formats.promela import to_promela
from pipesim.targets import find
from tests.support.fixture_types import Call
from tests.support.paths import ROOT, TRACES
from tests.support.perfetto_file import read

PC = "producer_consumer"


def test_as_json(call: Call) -> None:
    printed = call("export", PC, "--to", "promela", "-p", "tiles=1", "--json").json
    text = to_promela(find(PC).build({"tiles": 1}))
    assert printed == document("export", format="promela", file=None, text=text)
    assert call("export", PC, "--to", "promela", "-o", "ring.pml", "--json").json["file"] == "ring.pml"


# pictures


def test_a_word_of_global_memory_has_its_counter_outside_of_all_ctas(call: Call) -> None:
    kernel = ROOT / "tests" / "hang" / "records" / "words" / "grid_laps_hangs.ptx"
    answer = call("export", str(kernel), "--set", "together=4", "--to", "perfetto", "-o", "hang.pftrace")
    assert (answer.code, answer.err) == (0, "")


def test_each_format_is_a_file_named_after_the_protocol(call: Call) -> None:
    for to, suffix in (("perfetto", "pftrace"), ("html", "html"), ("svg", "svg")):
        answer = call("export", PC, "-p", "tiles=3", "--to", to)
        assert (answer.code, answer.err) == (0, "")
        assert answer.out.startswith(f"wrote {PC}.{suffix}: open it ")
        assert Path(f"{PC}.{suffix}").stat().st_size > 2_000
    again = call("export", PC, "-p", "tiles=3", "--to", "svg")
    assert (again.code, again.error[0]) == (2, f"pipesim: {PC}.svg exists already")


def test_a_trace_alone_beside_its_protocol_and_beside_another(call: Call) -> None:
    assert call("run", PC, "-p", "tiles=3", "--save-trace", "ring.parquet").code == 0
    alone = processes(call, "ring.parquet")
    assert alone == ["simulation, NVIDIA H100 80GB HBM3 (ring.parquet)"]
    assert processes(call, PC, "ring.parquet") == ["simulation (h100)", *alone]
    assert processes(call, "ring.parquet", PC) == ["simulation (h100)", *alone]
    assert processes(call, "ring.parquet", "ring.parquet") == [f"A: {alone[0]}", f"B: {alone[0]}"]


@pytest.mark.slow
def test_a_recorded_kernel_beside_its_ptx(call: Call) -> None:
    """Where nobody described the kernel: the simulation is of what is read from the PTX."""
    folder = TRACES / "h200" / "ptx"
    ptx, trace = (str(folder / f"triton-softmax.{end}") for end in ("ptx", "parquet"))
    alone = ["hardware, NVIDIA H200 (triton-softmax.parquet)"]
    assert processes(call, ptx, trace, "--profile", "h200") == ["simulation (h200)", *alone]
    assert processes(call, trace, "--protocol", ptx) == alone
    assert processes(call, trace, trace, "--protocol", ptx) == [f"A: {alone[0]}", f"B: {alone[0]}"]
    assert call("export", ptx, trace, "--to", "html", "-o", "both.html").code == 0
    assert "times        outside what was measured" in Path("both.html").read_text(encoding="utf-8")
    other = call("export", ptx, str(folder / "triton-split_k.parquet"), "--to", "svg")
    assert (other.code, other.out) == (3, "")
    assert other.error[0].startswith("pipesim: the trace of")
    assert "at: " in other.err


def processes(call: Call, *what: str) -> list[str]:
    """The processes of the Perfetto file of this."""
    answer = call("export", *what, "--to", "perfetto", "-o", "out.pftrace", "--force")
    assert (answer.code, answer.err) == (0, "")
    return list(dict.fromkeys(track[0] for track in read(Path("out.pftrace").read_bytes()).tracks))


@pytest.mark.slow
def test_a_trace_of_an_unknown_protocol_is_drawn_without_arrows_until_it_is_named(call: Call, ring: str) -> None:
    assert call("run", ring, "--save-trace", "mine.parquet").code == 0
    for more, arrows in ((), False), (("--protocol", ring), True):
        answer = call("export", "mine.parquet", *more, "--to", "svg", "--force")
        assert (answer.code, answer.err) == (0, "")
        picture = Path("mine.svg").read_text(encoding="utf-8")
        assert ('<path class="frees"' in picture) is arrows
        assert ("without its protocol" in picture) is not arrows


@pytest.mark.slow
def test_a_counterexample_and_a_hang(call: Call, ring: str) -> None:
    wrong = (ring, "-p", "arrivals=3")
    page = call("export", *wrong, "--to", "html", "--picture", "counterexample")
    assert (page.code, page.out) == (0, "wrote ring-counterexample.html: open it in a browser\n")
    text = Path("ring-counterexample.html").read_text(encoding="utf-8")
    assert "deadlock: 2 of 2 agents wait indefinitely" in text
    assert "stage.arrive()" in text, "the source lines are beside the steps"
    for picture in ("counterexample", "hang"):
        assert call("export", *wrong, "--to", "svg", "--picture", picture).code == 0
        assert "deadlock: 2 of 2 agents" in Path(f"ring-{picture}.svg").read_text(encoding="utf-8")
    assert call("export", *wrong, "--to", "svg").code == 0, "the timeline does not replace the other pictures"


def test_a_part_of_the_time_as_svg(call: Call) -> None:
    for more in ((), ("--between", "500..900")):
        assert call("export", PC, "--to", "svg", "--force", *more).code == 0
        drawn = Path(f"{PC}.svg").read_text(encoding="utf-8")
        assert ("600 ns" in drawn) is bool(more)


def test_open_starts_the_browser_on_the_file(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    assert call("export", PC, "-p", "tiles=3", "--to", "svg", "--open").code == 0
    assert call("export", PC, "-p", "tiles=3", "--to", "perfetto", "--open").code == 0
    assert opened == [Path(f"{PC}.svg").resolve().as_uri(), "https://ui.perfetto.dev"]


def test_without_the_package_perfetto_the_other_format_is_named(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "perfetto.protos.perfetto.trace", None)
    answer = call("export", PC, "-p", "tiles=3", "--to", "perfetto")
    assert answer.code == 2
    assert answer.error[0] == "pipesim: the package perfetto is not installed"
    assert "pip install 'pipesim[export]'" in answer.err
    assert not Path(f"{PC}.pftrace").exists()
