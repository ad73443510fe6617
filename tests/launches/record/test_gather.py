"""From the records of a process to traces that conform, with their PTX and launch files, and a report."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipesim.answers.compare import compare_kernel
from pipesim.answers.views.conclusion import Conclusion
from pipesim.conform.agreement import Agreement
from pipesim.formats.documents import as_json, record_exit_code
from pipesim.formats.documents import document as document_named
from pipesim.launches.record.buffer_file import LaunchEnd, RecordedBuffer
from pipesim.launches.record.gather import gather_recording
from pipesim.model.ending import Ending
from pipesim.ptx.kernel import read_kernel
from pipesim.report.pages.document import in_words
from pipesim.report.pages.programs.launches import recording_lines
from pipesim.trace.files import read_trace
from tests.support.documents import faults
from tests.support.recordable import HANGS, PTX, RIGHT, launch_of, recorded
from tests.support.spools import record_of, write_spool

MADE = {
    "kind": "instrumented",
    "kernel": RIGHT,
    "code": "i.ptx",
    "registers": [40, 44],
    "spills": [0, 8],
    "stack": [0, 0],
    "warnings": ["wgmma serialisation"],
}


def spool(folder: Path, *lines: dict[str, Any], **files: RecordedBuffer) -> Path:
    made = write_spool(folder / "spool", lines, i=PTX)
    for name, buffer in files.items():
        (made / f"{name}.records").write_bytes(buffer.encode())
    return made


def recorded_line(entry: str = RIGHT, file: str = "a.records", **more: Any) -> dict[str, Any]:
    launch = record_of(launch_of(entry), **more)
    del launch["kind"]
    return {"kind": "recorded", "launch": launch, "file": file, "reason": ""}


def test_a_trace_conforms_to_the_ptx_that_is_written_beside_it(tmp_path: Path) -> None:
    lines = [
        MADE,
        record_of(launch_of(RIGHT)),
        recorded_line(),
        {"kind": "count", "kernel": RIGHT, "image": "i", "launches": 3},
    ]
    report, files = gather_recording(spool(tmp_path, *lines, a=recorded()), folder=str(tmp_path), compare=True)
    files.write(tmp_path)
    assert sorted(each.name for each in tmp_path.iterdir()) == [
        f"{RIGHT}.json",
        f"{RIGHT}.parquet",
        f"{RIGHT}.ptx",
        "spool",
    ]
    assert (tmp_path / f"{RIGHT}.ptx").read_text() == PTX
    trace = read_trace(tmp_path / f"{RIGHT}.parquet")
    again = compare_kernel(read_kernel(tmp_path / f"{RIGHT}.ptx"), trace, "x")
    assert again.comparison.agreement is Agreement.CONFORMS
    (kernel,) = report.kernels
    assert (kernel.name, kernel.origin, kernel.launches, kernel.registers, kernel.spills) == (
        RIGHT, "Triton", 3, (40, 44), (0, 8),
    )  # fmt: skip
    (one,) = kernel.recorded
    assert (one.events, one.ending, one.took_ns, one.agreement, one.page) == (
        30, Ending.FINISHED, 1_500_000, Agreement.CONFORMS, (),
    )  # fmt: skip
    assert (report.conclusion, record_exit_code(report)) == (Conclusion.AGREES, 0)


def test_a_kernel_that_was_stopped_is_explained_in_the_lines_of_its_source(tmp_path: Path) -> None:
    buffer = recorded(HANGS, LaunchEnd.STOPPED, stop_flag=True)
    report, files = gather_recording(spool(tmp_path, recorded_line(HANGS), a=buffer), folder="recording")
    (one,) = report.traces
    assert (one.ending, one.agreement) == (Ending.DEADLINE, Agreement.HANGS_TOO)
    page = " ".join("\n".join(one.page).split())
    assert "compute waits for phase 3 of bars[1] (parity 1, now in phase 3): it has 0 of 1 arrivals" in page
    assert "(hands.py:21)" in page
    assert "compute_2 would send the arrival next (hands.py:32), but waits for bars[0]" in page
    assert (report.conclusion, record_exit_code(report)) == (Conclusion.WRONG, 1)
    assert files.traces[one.trace].meta.status is Ending.DEADLINE


def test_a_warp_that_went_another_way_is_seen(tmp_path: Path) -> None:
    """The twin of the first: the hash of what the first warp executed is another one, and nothing conforms."""
    whole = recorded()
    first = int.from_bytes(whole.data[8:16], "little")  # where the streams begin
    damaged = replace(whole, data=whole.data[: first + 20] + b"\xff" * 4 + whole.data[first + 24 :])
    report, files = gather_recording(spool(tmp_path, recorded_line(), a=damaged), compare=True)
    (one,) = report.kernels[0].recorded
    assert one.reason.startswith("no trace could be made: ")
    assert files.others[one.buffer] == damaged.encode()
    assert report.conclusion is Conclusion.UNKNOWN


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ([record_of(launch_of("plain__8_4"))], "no barrier"),
        ([record_of(launch_of(), code="", why_not="machine code only")], "machine code only"),
        (
            [record_of(launch_of())],
            "no launch of it was seen, by a stream or in a CUDA graph that was followed, or fewer than are skipped",
        ),
    ],
)
def test_a_kernel_that_was_not_recorded_has_a_reason(tmp_path: Path, lines: Any, reason: str) -> None:
    report, files = gather_recording(spool(tmp_path, *lines))
    (kernel,) = report.kernels
    assert (kernel.reason, kernel.recorded, files.others, files.traces) == (reason, (), {}, {})
    assert record_exit_code(report) == 3


def test_a_launch_that_was_refused_has_its_reason(tmp_path: Path) -> None:
    refused = recorded_line(file="") | {"reason": "it was launched in a CUDA graph"}
    report, _ = gather_recording(spool(tmp_path, refused))
    assert [(one.trace, one.reason) for one in report.kernels[0].recorded] == [("", refused["reason"])]


def test_a_buffer_of_another_launch_is_kept_and_said(tmp_path: Path) -> None:
    other = RecordedBuffer(LaunchEnd.FINISHED, "x", 1, (9, 0), 13000, 1, b"other")
    report, files = gather_recording(spool(tmp_path, recorded_line(), a=other))
    (one,) = report.kernels[0].recorded
    assert (one.trace, one.buffer) == ("", f"{RIGHT}.records")
    assert one.reason == "no trace could be made: the buffer has 5 bytes, and this launch one of 6,224"
    assert files.others[f"{RIGHT}.records"] == other.encode()


def test_the_document_fits_its_schema_and_the_table_its_width(tmp_path: Path) -> None:
    lines = [MADE, recorded_line(), recorded_line(HANGS, "b.records"), record_of(launch_of("plain__8_4"))]
    stopped = recorded(HANGS, LaunchEnd.STOPPED, stop_flag=True)
    report, _ = gather_recording(spool(tmp_path, *lines, a=recorded(), b=stopped), folder="out", compare=True)
    document = json.loads(as_json(document_named("record", record_exit_code(report), report=report), in_words))
    assert faults("record", document) == []
    page = recording_lines(report, 100)
    assert page[:6] == [
        "  kernel      PTX from  launches  registers  spills",
        "  hands__8_4  Triton                40 → 44   0 → 8",
        "    ✓ hands__8_4.parquet · grid 1 · block 64 · 30 events · finished in 1.5 ms · conforms",
        "      note: wgmma serialisation",
        "  hangs__8_4  Triton                      0       0",
        "    ✗ hangs__8_4.parquet · grid 1 · block 64 · 25 events · did not end in time: 1.5 ms · hangs where",
    ]
    assert page[-3:] == [
        "✗ 2 traces of 2 kernels written to out; 1 launch did not end by itself",
        "",
        "  pipesim diff out/hangs__8_4.parquet --protocol out/hangs__8_4.ptx",
    ]


def test_the_launch_file_says_which_cta_was_recorded(tmp_path: Path) -> None:
    line = recorded_line(grid=[4, 1, 1])
    third, tenth = replace(recorded(), cta=2), replace(recorded(), cta=9)
    lines = [MADE, line, line | {"file": "b.records"}]
    report, files = gather_recording(spool(tmp_path, *lines, a=third, b=tenth), compare=True)
    first, second = report.kernels[0].recorded
    assert (json.loads(files.others[first.launch])["cta"], first.agreement) == (2, Agreement.CONFORMS)
    assert (second.trace, second.reason) == (
        "",
        "no trace could be made: its grid has 4 CTAs, and none of the number 9",
    )
    assert list(files.traces) == [first.trace]
