"""The file of one recorded launch: read back equal, and refused where it is not whole or not ours."""

import pytest

from pipesim.errors import LaunchFileError, ParameterError
from pipesim.launches.record.buffer_file import HEADER_BYTES, LaunchEnd, RecordedBuffer, decode_buffer, read_record_file
from pipesim.launches.record.options import OPTIONS, RecordOptions

DATA = bytes(range(64))
BUFFER = RecordedBuffer(LaunchEnd.STOPPED, "NVIDIA H200", 132, (9, 0), 13000, 1_234_567_890_123, DATA, True, cta=5)


def test_a_file_reads_back_equal(tmp_path) -> None:
    file = tmp_path / "a.records"
    file.write_bytes(BUFFER.encode())
    assert len(BUFFER.encode()) == HEADER_BYTES + 64
    assert read_record_file(file) == BUFFER


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda data: b"", "this is not a file of records"),
        (lambda data: b"X" + data[1:], "this is not a file of records"),
        (lambda data: data[:-1], "the file has 63 bytes of records, and should have 64"),
        (lambda data: data + b"\0", "the file has 65 bytes of records, and should have 64"),
        (lambda data: data[:8] + b"\7" + data[9:], "a file of records of version 7, with end 1"),
        (lambda data: data[:12] + b"\7" + data[13:], "a file of records of version 1, with end 7"),
    ],
)
def test_a_damaged_file_is_refused(damage, said) -> None:
    with pytest.raises(LaunchFileError) as refused:
        decode_buffer(damage(BUFFER.encode()), "a.records")
    assert (refused.value.fact, refused.value.place) == (said, "a.records")


def test_options_travel_in_the_environment() -> None:
    options = RecordOptions(3, 2, 0.5, waits_only=True, cta=7)
    assert RecordOptions.from_environment(options.to_environment()) == options
    assert RecordOptions.from_environment({}) == RecordOptions()
    assert RecordOptions.from_environment(RecordOptions().to_environment() | {"x": "y"}) == RecordOptions()
    assert list(options.to_environment()) == [OPTIONS]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"launches": 0}, "0 launches to record"),
        ({"skip": -1}, "-1 launches to skip"),
        ({"cta": -1}, "CTA -1 to record"),
        ({"deadline_s": 0.0}, "a deadline of 0.0 s"),
        ({"deadline_s": float("nan")}, "a deadline of nan s"),
    ],
)
def test_options_out_of_their_range(options, said) -> None:
    with pytest.raises(ParameterError, match=said):
        RecordOptions(**options)
