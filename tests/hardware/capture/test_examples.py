"""The examples in other styles compile, off, recording and marking, and their tables are those of their protocols."""

from pathlib import Path

import pytest

from hwkernels.capture import kernel_names
from hwkernels.capture.arguments import check_arguments, parse_argument
from hwkernels.capture.kernel_names import defaults, own_text
from hwkernels.capture.request import CaptureRequest
from hwkernels.capture.source_subject import SourceSubject
from hwkernels.source_recorder.table import read_table
from pipesim.errors import CompileError, UsageError
from pipesim.model.steady import marked_iterations
from pipesim.targets import find
from pipesim.trace.schema import ON_WORDS, OPTIONAL, EventKind
from pipesim.trace.sites import optional_sites, site_table
from tests.support.lanes import slow_but
from tests.support.paths import EXAMPLES, EXCHANGE

RELAY = {"stages": 3, "tiles": 37, "noinc": 1, "work": 300}
MULTICASTS = {"stages": 3, "tiles": 29, "tile_bytes": 8192, "math_warps": 4}


def subject(name: str, **more: object) -> SourceSubject:
    folder = EXCHANGE if name == "exchange" else EXAMPLES
    usual = {
        "source": str(folder / f"{name}.cu"), "table": str(folder / f"{name}.table.h"), "protocol": name,
        "grid": (4,), "block": (288,), "smem_bytes": 41200,
    }  # fmt: skip
    return SourceSubject(**(usual | more))  # type: ignore[arg-type]


@pytest.mark.sampled(1, 1)
@pytest.mark.parametrize("memory", slow_but(["host"], ["device", "host"]))
@pytest.mark.parametrize(("name", "params"), [("relay", RELAY), ("exchange", MULTICASTS)])
def test_an_example_compiles(name: str, params: dict[str, int], memory: str) -> None:
    """TILE_BYTES is a name that only the kernel of `exchange` uses: the protocol's parameter gives its value."""
    asked = CaptureRequest(subject(name, marks_at=(9, 27)), params)
    builds = asked.subject.compile(asked, memory)
    assert sorted(builds) == (["traced"] if memory == "host" else ["marked", "plain", "traced"])
    assert not any(build.log for build in builds.values())
    first = "map:none,type=f32,dims=32x64,box=32x32" if name == "exchange" else "buf:64"
    check_arguments([parse_argument(text, n) for n, text in enumerate((first, "out:64", "u32:37"))], builds)


@pytest.mark.parametrize("noinc", [0, 1])
def test_the_table_of_the_relay_is_its_protocols(noinc: int) -> None:
    program = find(f"{EXAMPLES / 'relay.py'}:relay").build(RELAY | {"noinc": noinc})
    table = read_table(EXAMPLES / "relay.table.h", {"STAGES": 3})
    known = site_table(program, optional_sites(program))
    assert (table.agents, table.barriers) == (known.agents, known.barriers)
    sites = {site.key for site in known.sites}
    assert sites <= {site.key for site in table.sites}
    extra = {site.key for site in table.sites} - sites
    assert extra == ({("load", EventKind.ARRIVE, "in_full")} if noinc else set())
    assert {site.kind for site in table.sites} & OPTIONAL == OPTIONAL - ON_WORDS - {EventKind.COMMIT}


def test_the_marks_are_in_the_steady_state_of_the_loop_that_all_run() -> None:
    relay = find(f"{EXAMPLES / 'relay.py'}:relay")
    assert marked_iterations(relay.build(RELAY)) == (9, 27)
    assert marked_iterations(relay.build(RELAY | {"tiles": 4})) is None
    assert marked_iterations(find("producer_consumer").build({"tiles": 64, "stages": 4})) == (16, 52)


@pytest.mark.parametrize("include", ["sub/x.h", ".", "..", "../k.cu", "k.cu", "\0", "a" * 5000, "/no/such/folder/x.h"])
def test_an_include_of_any_name_is_read_once_or_not_at_all(tmp_path: Path, include: str) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "x.h").write_text('#define N 3\n#include "../sub/x.h"\n')
    (tmp_path / "k.cu").write_text(f'#include "{include}"\n')
    found = defaults(own_text(tmp_path / "k.cu"))
    assert found == ({"N": 3} if include == "sub/x.h" else {})


def test_a_source_of_very_many_headers_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "k.cu").write_text("".join(f'#include "{n}.h"\n' for n in range(5)))
    for n in range(5):
        (tmp_path / f"{n}.h").write_text("")
    assert own_text(tmp_path / "k.cu")
    monkeypatch.setattr(kernel_names, "MAX_SOURCES", 5)
    with pytest.raises(UsageError, match=r"k\.cu includes more than 5 files"):
        own_text(tmp_path / "k.cu")


def test_a_name_that_nobody_knows_is_named_with_the_option_that_gives_it(tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text("__global__ void k(int *out) { *out = WIDTH + HEIGHT; }\n")
    (tmp_path / "k.table.h").write_text("PIPESIM_ROLE(a, 1)\n")
    own = subject("relay", source=str(tmp_path / "k.cu"), table=str(tmp_path / "k.table.h"))
    with pytest.raises(CompileError) as caught:
        own.compile(CaptureRequest(own, {"width": 3}), "host")
    assert "define WIDTH and HEIGHT in the kernel, or give a value: -D WIDTH=4" in caught.value.correction
    builds = own.compile(CaptureRequest(own, {"width": 3, "height": 5}), "host")
    assert {"-DWIDTH=3", "-DHEIGHT=5"} <= set(builds["traced"].options)
