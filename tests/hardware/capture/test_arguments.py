"""Arguments of other people's kernels: every type, every mistake, and buffers that follow from the seed."""

import numpy as np
import pytest

from hwkernels.capture.arguments import Argument, contents, parse_argument, read_npy
from pipesim.errors import ParameterError


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("64", "--arg 64 has no type"),
        ("int:64", "--arg int:64 has an unknown type"),
        ("u32:", "'' is not a number of type u32"),
        ("u32:1.5", "'1.5' is not a number of type u32"),
        ("u32:-1", "-1 does not fit u32"),
        ("u8:256", "256 does not fit u8"),
        (f"u64:{10**400}", "000 does not fit u64"),
        ("f32:1e39", "1e39 does not fit f32"),
        ("f32:one", "'one' is not a number of type f32"),
        ("buf:0", "'0' is not a number of bytes"),
        ("buf:many", "'many' is not a number of bytes"),
        ("out::sums", "'' is not a number of bytes"),
        ("npy:nowhere.npy", "there is no file nowhere.npy"),
        ("npy:", "there is no file of no name"),
    ],
)
def test_what_is_no_argument(text, fact):
    with pytest.raises(ParameterError) as caught:
        parse_argument(text, 0)
    assert fact in caught.value.fact


def test_what_a_buffer_holds(tmp_path):
    path = tmp_path / "a.npy"
    np.save(path, np.arange(6, dtype=np.float32).reshape(2, 3).T)
    held = contents(parse_argument(f"npy:{path}", 0), 0, 0)
    assert held.view(np.float32).tolist() == [0, 3, 1, 4, 2, 5]  # in C order
    assert (
        contents(Argument("zero", "3"), 0, 0).tolist() == contents(Argument("out", "3", "x"), 0, 0).tolist() == [0] * 3
    )
    random = contents(Argument("buf", "64"), 7, 1)
    assert (random == contents(Argument("buf", "64"), 7, 1)).all()
    assert (random != contents(Argument("buf", "64"), 7, 2)).any()
    assert (random != contents(Argument("buf", "64"), 8, 1)).any()


@pytest.mark.parametrize("data", [b"", b"no array", b"\x93NUMPY\x01\x00", b"PK\x03\x04 an archive of arrays"])
def test_a_file_that_is_no_array(tmp_path, data):
    path = tmp_path / "a.npy"
    path.write_bytes(data)
    with pytest.raises(ParameterError, match=r"is not a \.npy file of numbers"):
        read_npy(str(path))


def header_of(shape, descr="'<f4'"):
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}".encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


@pytest.mark.parametrize(
    ("data", "cause"),
    [
        (header_of("(1000000000000,)"), "its header promises 4,000,000,000,000 bytes, 8 follow it"),
        (header_of("(-1,)"), "its header promises -4 bytes, 8 follow it"),
        (header_of("(0, 99999999999999999999)"), None),
        (header_of("(2,)", "'|V0'"), "its elements are of type |V0, which have no fixed bytes"),
        (header_of("(2,)", "'|O'"), "its elements are of type object, which have no fixed bytes"),
        (b"\x93NUMPY\x03\x00", "its format has version 3.0; 1.0 and 2.0 are read"),
        (header_of("(" * 80), None),
        (header_of("('a',)"), None),
        (header_of("(2L,"), None),
    ],
)
def test_a_header_that_promises_what_is_not_there(tmp_path, data, cause):
    path = tmp_path / "a.npy"
    path.write_bytes(header_of("(2,)") + bytes(8))
    assert read_npy(str(path)).tolist() == [0.0, 0.0]
    path.write_bytes(data + bytes(8))
    with pytest.raises(ParameterError, match=r"is not a \.npy file of numbers") as caught:
        read_npy(str(path))
    assert caught.value.cause == (cause or caught.value.cause)
    assert caught.value.cause
    assert caught.value.correction == "write it with numpy.save"
