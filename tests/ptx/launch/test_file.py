"""Launch files: what is written is read again, and what is wrong with one is said with its place."""

import json

import pytest

from pipesim.errors import LaunchFileError
from pipesim.ptx.launch.file import launch_json, read_launch
from pipesim.ptx.launch.values import (
    Array,
    Field,
    Free,
    Launch,
    Number,
    Parameter,
    Pointer,
    Policies,
    Struct,
    TensorMap,
)

MAP = TensorMap("bf16", (1024, 512), (64, 128), (2048,), (1, 2), "128B")
EVERYTHING = Launch(
    "kernel",
    (132, 2, 1),
    (384, 1, 1),
    (2, 1, 1),
    227328,
    168,
    (
        Parameter("a", MAP),
        Parameter("", TensorMap("u8", (64, 8, 8, 2), (32,), (64, 512, 4096), interleave="16B", pixels=128)),
        Parameter("unknown", TensorMap()),
        Parameter("n", Number("u32", 7)),
        Parameter("scale", Number("f32", 0.5)),
        Parameter("open", Number("s64", None)),
        Parameter("sizes", Pointer(16, (Field(0, Array("s32", (1, -2))), Field(8, Pointer())))),
        Parameter("lens", Pointer(contents=(Field(0, Array("s32", (0, 64), Free(-64, 64, 64, (0, 64)))),))),
        Parameter("args", Struct(256, (Field(0, Number("u64", 1 << 40)), Field(64, MAP)))),
    ),
    Policies(3, 5, 2),
)


def test_a_launch_is_the_same_after_it_was_written_and_read():
    assert read_launch(launch_json(EVERYTHING), "k.json") == EVERYTHING


def test_what_a_small_file_looks_like():
    launch = Launch("k", (2, 1, 1), (64, 1, 1), parameters=(Parameter("n", Number("u32", 7)), Parameter("", Pointer())))
    assert launch_json(launch) == (
        """{
  "format": "pipesim-launch",
  "version": 1,
  "entry": "k",
  "grid": [2, 1, 1],
  "block": [64, 1, 1],
  "cluster": [1, 1, 1],
  "dynamic_shared_bytes": 0,
  "registers_per_thread": 0,
  "parameters": [
    {"name": "n", "kind": "value", "type": "u32", "value": 7},
    {"kind": "pointer"}
  ],
  "policies": {"tile_counter": 0}
}
"""
    )


def test_members_that_are_left_out():
    text = '{"format": "pipesim-launch", "version": 1, "grid": [4], "block": [32, 2]}'
    assert read_launch(text, "k.json") == Launch("", (4, 1, 1), (32, 2, 1))


@pytest.mark.parametrize(
    ("box", "nbytes"),
    [
        (MAP, 64 * 64 * 2),  # every second row
        (TensorMap("u8", (64,), (32,), pixels=128), 32 * 128),
        (TensorMap("u4_align8", (64,), (64, 4)), 128),
        (TensorMap(), 0),
    ],
)
def test_bytes_of_a_box(box, nbytes):
    assert box.box_bytes == nbytes


GOOD: dict[str, object] = {"format": "pipesim-launch", "version": 1, "entry": "k", "grid": [1], "block": [32]}


def changed(**members):
    return json.dumps(GOOD | members)


@pytest.mark.parametrize(
    ("text", "fact", "place"),
    [
        ("{", "this is not a launch file: it is not JSON", "k.json"),
        ("[" * 100000, "this launch file is larger than pipesim reads", "k.json"),
        ("[]", "this is not a launch file", "k.json"),
        ('{"format": "other"}', "this is not a launch file", "k.json"),
        (changed(version=2), "a launch file of version 2 cannot be read", "k.json"),
        (changed(gird=[1]), "the member 'gird' is not known", "k.json"),
        (json.dumps({**GOOD, "grid": None} | {"grid": []}), "grid: expected one to three numbers", "k.json.grid"),
        (changed(grid=[0]), "grid: expected a list of up to 3 whole numbers", "k.json.grid"),
        (changed(block=[2048]), "block: expected a list of up to 3 whole numbers", "k.json.block"),
        (changed(block=[True]), "block: expected a list of up to 3 whole numbers", "k.json.block"),
        (changed(entry=7), "entry: expected text, found 7", "k.json.entry"),
        (changed(parameters={}), "parameters: expected a list, found an object", "k.json.parameters"),
        (changed(parameters=[7]), "this is 7, not an object", "k.json.parameters[0]"),
        (changed(parameters=[{}]), "kind is missing", "k.json.parameters[0]"),
        (changed(parameters=[{"kind": "x"}]), "kind: expected one of value, array", "k.json.parameters[0].kind"),
        (changed(parameters=[{"kind": "pointer"}, 0]), "this is 0", "k.json.parameters[1]"),
        (changed(parameters=[{"kind": "value", "type": "u32"}]), "value is missing", "k.json.parameters[0]"),
        (
            changed(parameters=[{"kind": "value", "type": "u8", "value": 256}]),
            "value: 256 does not fit u8",
            "k.json.parameters[0].value",
        ),
        (
            changed(parameters=[{"kind": "value", "type": "u8", "value": 1.5}]),
            "value: 1.5 is not a whole number",
            "k.json.parameters[0].value",
        ),
        (
            changed(parameters=[{"kind": "value", "type": "f16", "value": 1e9}]),
            "value: 1000000000.0 does not fit f16",
            "k.json.parameters[0].value",
        ),
        (
            changed(parameters=[{"kind": "value", "type": "u64", "value": 1 << 65}]),
            "value: the number has more than 64 bits",
            "k.json.parameters[0].value",
        ),
        (
            changed(parameters=[{"kind": "pointer", "align": 12}]),
            "align: 12 is not a power of two",
            "k.json.parameters[0].align",
        ),
        (
            changed(parameters=[{"kind": "tensor_map", "element": "bf16"}]),
            "box: box and element are given together",
            "k.json.parameters[0].box",
        ),
        (
            changed(parameters=[{"kind": "tensor_map", "element": "u8", "box": [1, 2], "pixels": 4}]),
            "box: expected the channels alone",
            "k.json.parameters[0].box",
        ),
        (
            changed(parameters=[{"kind": "struct", "size": 8, "fields": [{"offset": 4, "kind": "pointer"}]}]),
            "the field ends after the 8 bytes of its structure",
            "k.json.parameters[0].fields[0]",
        ),
        (changed(policies={"tiles": 1}), "the member 'tiles' is not known", "k.json.policies"),
    ],
)
def test_what_is_wrong_with_a_file(text, fact, place):
    with pytest.raises(LaunchFileError) as raised:
        read_launch(text, "k.json")
    assert fact in raised.value.fact
    assert raised.value.place == place


@pytest.mark.parametrize(
    ("free", "fact", "place"),
    [
        ({}, "a free array has no bounds: low and high of its elements are missing", "free"),
        ({"low": 0}, "a free array has no bounds: high of its elements are missing", "free"),
        ({"low": 4, "high": 0}, "high: no range of values goes from 4 to 0", "free.high"),
        ({"low": 0, "high": 9, "step": 2}, "high: no range of values goes 0 to 9 in steps of 2", "free.high"),
        ({"low": -1, "high": 9}, "low: expected a whole number from 0", "free.low"),
        ({"low": 0, "high": 8, "rises_by": [2, 1]}, "rises_by: expected the least and the greatest", "free.rises_by"),
        ({"low": 0, "high": 8, "bounds": 1}, "the member 'bounds' is not known", "free"),
        ({"low": 0, "high": 8}, "values: value 1 is 9, and free says 0 to 8", "values"),
        ({"low": 0, "high": 9, "rises_by": [0, 2]}, "values: value 1 is 9 after 1, and rises_by says 0 to 2", "values"),
    ],
)
def test_what_is_wrong_with_a_free_array(free, fact, place):
    array = {"offset": 0, "kind": "array", "type": "u32", "values": [1, 9], "free": free}
    with pytest.raises(LaunchFileError) as raised:
        read_launch(changed(parameters=[{"kind": "pointer", "contents": [array]}]), "k.json")
    assert fact in raised.value.fact
    assert raised.value.place == f"k.json.parameters[0].contents[0].{place}"
    assert raised.value.correction


def test_a_free_array_may_have_a_count_instead_of_values():
    array = {"offset": 0, "kind": "array", "type": "s32", "count": 3, "free": {"low": 1, "high": 9, "rises_by": [2, 4]}}
    read = read_launch(changed(parameters=[{"kind": "pointer", "contents": [array]}]), "k.json")
    content = Pointer(contents=(Field(0, Array("s32", (1, 3, 5), Free(1, 9, 1, (2, 4)))),))
    assert read.parameters == (Parameter("", content),)


def test_structures_inside_each_other_have_a_limit():
    inner: dict[str, object] = {"kind": "pointer"}
    for _ in range(9):
        inner = {"kind": "pointer", "contents": [{"offset": 0, **inner}]}
    with pytest.raises(LaunchFileError, match="nested too deeply"):
        read_launch(changed(parameters=[inner]), "k.json")


def test_a_file_that_is_too_large():
    with pytest.raises(LaunchFileError, match="it has 20,000,000 bytes; at most 16,777,216 are read"):
        read_launch(" " * 20_000_000, "k.json")
