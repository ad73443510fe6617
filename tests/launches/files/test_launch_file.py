"""A record and its PTX become a launch file: the bytes of every parameter, by the types that the PTX declares."""

import json
import math
import struct
from pathlib import Path
from typing import Any

import pytest

from pipesim.launches.files.launch_file import KernelText, barriers, describe_launch, kernel_text, number
from pipesim.launches.records.read import read_spool
from pipesim.launches.records.record import LaunchRecord
from pipesim.ptx.extract import extract
from pipesim.ptx.launch.file import launch_json, read_launch
from pipesim.ptx.launch.image import encode_value
from pipesim.ptx.launch.values import Array, Field, Launch, Number, Pointer, Struct, TensorMap
from tests.support.paths import ROOT
from tests.support.present import present
from tests.support.spools import ADDRESS, map_words, record_of, write_spool

KERNELS = ROOT / "tests" / "ptx" / "kernels"
NAMES = sorted(path.stem for path in KERNELS.glob("*.ptx"))
MAP = TensorMap("bf16", (1024, 64), (64, 64), (2048,), (1, 1), "128B")
HEAD = ".version 8.7\n.target sm_90a\n.address_size 64\n"


def one_record(tmp_path: Path, record: dict[str, Any]) -> LaunchRecord:
    """The record as it is read."""
    found = read_spool(write_spool(tmp_path / "spool", [record]))
    assert found.notes == []
    (launch,) = found.launches
    return launch


def kernel_of(parameters: str, body: str = "bar.sync 0;", more: str = "") -> KernelText:
    text = f"{HEAD}.visible .entry k({parameters}) {more} {{ .reg .b32 %r<9>; .reg .b64 %rd<9>; {body} ret; }}"
    return kernel_text(text, "k.ptx", "k")


def launched(*parameters: dict[str, Any], **more: Any) -> dict[str, Any]:
    return record_of(Launch("k", (2, 1, 1), (64, 1, 1)), parameters=list(parameters), **more)


@pytest.mark.parametrize("name", NAMES)
class TestRoundTrip:
    """Launch file, record, launch file: what Triton's own description said comes back from the bytes alone."""

    @pytest.mark.sampled(1, 2)
    def test_the_file_is_accepted_and_gives_the_same_program(self, tmp_path: Path, name: str) -> None:
        text = (KERNELS / f"{name}.ptx").read_text(encoding="utf-8")
        given = read_launch((KERNELS / f"{name}.json").read_text(encoding="utf-8"), name)
        made = describe_launch(one_record(tmp_path, record_of(given)), kernel_text(text, f"{name}.ptx", given.entry))
        assert made.compiled is not None
        again = read_launch(launch_json(made.compiled.launch), "x")
        assert again == made.compiled.launch
        module = kernel_text(text, f"{name}.ptx", given.entry).module
        assert extract(module, again).program.code == extract(module, given).program.code


def test_scalars_have_the_types_of_the_ptx(tmp_path: Path) -> None:
    kinds = {"u8": b"\xff", "s8": b"\xff", "b16": b"\xfe\xff", "s32": b"\xfe\xff\xff\xff", "b32": b"\xfe\xff\xff\xff",
             "u64": b"\1" + bytes(7), "b64": b"\xff" * 8, "s64": b"\xff" * 8, "f32": struct.pack("<f", 0.1),
             "f64": struct.pack("<d", -0.0), "f16": struct.pack("<e", 1.5)}  # fmt: skip
    kernel = kernel_of(", ".join(f".param .{kind} p{n}" for n, kind in enumerate(kinds)))
    record = one_record(tmp_path, launched(*({"bytes": data.hex()} for data in kinds.values())))
    made = present(describe_launch(record, kernel).compiled)
    found = [each.content for each in made.launch.parameters]
    assert found == [
        Number("u8", 255), Number("s8", -1), Number("u16", 65534), Number("s32", -2), Number("u32", (1 << 32) - 2),
        Number("u64", 1), Number("u64", (1 << 64) - 1), Number("s64", -1),
        Number("f32", struct.unpack("<f", struct.pack("<f", 0.1))[0]), Number("f64", -0.0), Number("f16", 1.5),
    ]  # fmt: skip
    again = read_launch(launch_json(made.launch), "x")
    assert record_of(again)["parameters"] == [{"bytes": data.hex()} for data in kinds.values()]


@pytest.mark.parametrize("kind", ["f16", "bf16", "f32", "f64"])
def test_floats_that_json_lacks_keep_their_bits_as_integers(kind: str) -> None:
    size = {"f16": 2, "bf16": 2, "f32": 4, "f64": 8}[kind]
    patterns = {"f16": (0x7C00, 0x7E01, 0x8000), "bf16": (0x7F80, 0x7FC1, 0x8000), "f32": (0xFF800000, 0x7FA00001, 1)}
    for bits in patterns.get(kind, (0x7FF << 52, (0x7FF << 52) + 1, 1 << 63)):
        data = bits.to_bytes(size, "little")
        found = number(kind, data)
        assert found.value is not None
        assert math.isfinite(found.value)
        again = json.loads(json.dumps(found.value))
        assert encode_value(found.type, again) == data


def test_a_pointer_is_known_by_the_driver_or_by_its_declaration(tmp_path: Path) -> None:
    kernel = kernel_of(".param .u64 a, .param .u64 .ptr .global .align 1 b, .param .u64 .ptr .global .align 1 c, "
                       ".param .u64 n")  # fmt: skip
    device, number = ((1 << bits).to_bytes(8, "little").hex() for bits in (6, 40))
    known = {"bytes": device, "pointers": [{"at": 0, "align": 512}]}
    words: list[dict[str, Any]] = [known, {"bytes": device}, {"bytes": "00" * 8}, {"bytes": number}]
    made = present(describe_launch(one_record(tmp_path, launched(*words)), kernel).compiled)
    assert [each.content for each in made.launch.parameters] == [
        Pointer(512), Pointer(64), Number("u64", 0), Number("u64", 1 << 40),
    ]  # fmt: skip


def test_memory_is_written_only_where_the_synchronisation_needs_it(tmp_path: Path) -> None:
    """``lengths[0]`` decides whether there is a barrier; what ``data`` leads to decides nothing."""
    body = """
    .reg .pred %p<2>;
    ld.param.u64 %rd1, [lengths]; ld.param.u64 %rd2, [data];
    ld.global.s32 %r1, [%rd1]; setp.gt.s32 %p1, %r1, 3; ld.global.f32 %f1, [%rd2];
    @%p1 bra done; bar.sync 0; done:
    """
    kernel = kernel_of(".param .u64 lengths, .param .u64 data", f".reg .f32 %f<2>; {body}")
    copied = {"at": 0, "align": 256, "contents": "05000000ffffffff7f"}
    words = {"bytes": "00" * 8, "pointers": [copied]}
    made = present(describe_launch(one_record(tmp_path, launched(words, words)), kernel).compiled)
    first, second = (each.content for each in made.launch.parameters)
    assert first == Pointer(256, (Field(0, Array("s32", (5,))),))  # of what was copied, the word that is read
    assert second == Pointer(256)


def test_a_structure_has_its_maps_its_pointers_and_every_other_word(tmp_path: Path) -> None:
    kernel = kernel_of(".param .align 64 .b8 p[215]")
    data = bytes(range(64)) + b"\xab" * 128 + (ADDRESS + 16).to_bytes(8, "little") + bytes(range(15))
    given = {"bytes": data.hex(), "maps": [{"at": 64} | map_words(MAP)], "pointers": [{"at": 192, "align": 16}]}
    made = present(describe_launch(one_record(tmp_path, launched(given)), kernel).compiled)
    (content,) = (each.content for each in made.launch.parameters)
    words = struct.unpack("<16I", data[:64])
    assert content == Struct(215, (
        Field(0, Array("u32", words)), Field(64, MAP), Field(192, Pointer(16)),
        Field(200, Array("u32", struct.unpack("<3I", data[200:212]))), Field(212, Number("u16", 0x0D0C)),
        Field(214, Number("u8", 14)),
    ))  # fmt: skip
    assert record_of(made.launch)["parameters"][0] == given


def test_a_word_at_an_odd_place_is_taken_in_smaller_ones(tmp_path: Path) -> None:
    kernel = kernel_of(".param .align 8 .b8 p[16]")
    given = {"bytes": bytes(range(16)).hex(), "pointers": [{"at": 3, "align": 1}]}
    made = describe_launch(one_record(tmp_path, launched(given)), kernel).compiled
    assert made is not None
    (content,) = (each.content for each in made.launch.parameters)
    assert isinstance(content, Struct)
    assert [field.offset for field in content.fields] == [0, 2, 3, 11, 12]


class TestMapsDecoded:
    """A map that the process was not seen to encode is known by its bytes, where the kernel copies by it."""

    BYTES = (
        "007edc61de5500003265240020000000100000000040000000000000000000007f000000ff0100000100000000000000000000000000003f"
        "7f000000"
    )
    MAP = TensorMap("bf16", (128, 512, 2, 1), (64, 128, 1, 1), (512, 256, 262144), swizzle="128B")
    COPY = (
        "cvta.param.u64 %rd1, {}; cp.async.bulk.tensor.1d.shared::cta.global.tile.mbarrier::complete_tx::bytes "
        "[%r1], [%rd1, {{%r2}}], [%r3];"
    )

    def test_a_parameter(self, tmp_path: Path) -> None:
        given = {"bytes": self.BYTES.ljust(256, "0"), "pointers": [{"at": 0, "align": 64}]}
        record = one_record(tmp_path, launched(given))
        made = describe_launch(
            record, kernel_of(".param .align 64 .b8 p[128]", "mov.b64 %rd2, p; " + self.COPY.format("%rd2"))
        )
        assert made.notes == ("the tensor map in p was not seen being encoded: its box is decoded from its bytes",)
        assert present(made.compiled).launch.parameters[0].content == self.MAP

    def test_a_part_of_a_structure_and_one_that_no_copy_uses(self, tmp_path: Path) -> None:
        one = self.BYTES.ljust(256, "0")
        record = one_record(tmp_path, launched({"bytes": one + one}))
        copies = "mov.b64 %rd2, p; add.s64 %rd3, %rd2, 128; " + self.COPY.format("%rd3")
        made = present(describe_launch(record, kernel_of(".param .align 64 .b8 p[256]", copies)).compiled)
        content = made.launch.parameters[0].content
        assert isinstance(content, Struct)
        assert [(each.offset, isinstance(each.content, TensorMap)) for each in content.fields] == [
            (0, False),
            (128, True),
        ]


@pytest.mark.parametrize(
    ("parameters", "given", "reason"),
    [
        (".param .u32 a", [], "the launch has 0 parameters, and its PTX 1"),
        (".param .u32 a, .param .u64 b", ["00" * 4, "00" * 4],
         "parameter 1 (b) has 4 bytes in the launch and 8 in its PTX"),
        (".param .align 8 .b8 s[24]", ["00" * 16], "parameter 0 (s) has 16 bytes in the launch and 24 in its PTX"),
    ],
)  # fmt: skip
def test_parameters_that_are_not_those_of_the_ptx(
    tmp_path: Path, parameters: str, given: list[str], reason: str
) -> None:
    record = one_record(tmp_path, launched(*({"bytes": each} for each in given)))
    made = describe_launch(record, kernel_of(parameters))
    assert (made.compiled, made.reason) == (None, reason)


def test_parameters_that_the_driver_did_not_give(tmp_path: Path) -> None:
    record = one_record(tmp_path, launched(parameters_known=False))
    assert describe_launch(record, kernel_of("")).reason == "the driver gave no parameters for it"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("bar.sync 0;", True),
        ("barrier.sync 1, 64;", True),
        ("barrier.cluster.arrive;", True),
        ("mbarrier.init.shared.b64 [%r1], 1;", True),
        ("cp.async.commit_group;", True),
        ("cp.async.ca.shared.global [%r1], [%rd1], 16;", True),
        ("bar.warp.sync -1;", False),
        ("membar.gl; st.global.u32 [%rd1], %r1;", False),
        ("cp.async.bulk.prefetch.L2.global [%rd1], 16;", False),
        ("", False),
    ],
)
def test_which_kernels_have_barriers(body: str, expected: bool) -> None:
    assert barriers(kernel_of("", body).function) is expected


def test_a_barrier_of_a_function_that_is_called_counts() -> None:
    functions = ".func f() { bar.sync 0; ret; } .func g() { ret; }"
    text = f"{HEAD}{functions} .entry k() {{ call f, (); ret; }} .entry n() {{ call g, (); ret; }}"
    assert kernel_text(text, "x.ptx", "k").has_barriers
    assert not kernel_text(text, "x.ptx", "n").has_barriers
