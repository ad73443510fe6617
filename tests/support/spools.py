"""Spool folders as an observed process writes them: the record of a launch that a launch file describes, and files."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pipesim.ptx.launch.image import encode_value
from pipesim.ptx.launch.values import (
    Array,
    Content,
    Launch,
    Number,
    Pointer,
    Struct,
    TensorMap,
    size_of,
)

PROCESS = {"kind": "process", "version": 1, "pid": 7, "argv": ["train.py"], "device": "NVIDIA H200", "arch": "sm_90"}
ADDRESS = 0x7F00_0000_0000  #: of device memory; where it is says nothing


def record_of(launch: Launch, **more: Any) -> dict[str, Any]:
    """The record of a launch; ``more``: members in place of those that it has, as ``code`` and ``kernel``."""
    shapes = {"grid": list(launch.grid), "block": list(launch.block), "cluster": list(launch.cluster)}
    numbers = {"dynamic_shared": launch.dynamic_shared, "registers": launch.registers}
    parameters = [_parameter(each.content) for each in launch.parameters]
    record = {"kind": "launch", "kernel": launch.entry, "image": "i", "code": "i.ptx", "origin": "Triton"}
    return record | {"why_not": ""} | shapes | numbers | {"via": "launch", "parameters": parameters} | more


def _parameter(content: Content) -> dict[str, Any]:
    data = bytearray(size_of(content))
    found: dict[str, Any] = {"pointers": [], "maps": []}
    _put(content, 0, data, found)
    return {"bytes": data.hex()} | {name: each for name, each in found.items() if each}


def _put(content: Content, at: int, data: bytearray, found: dict[str, Any]) -> None:
    match content:
        case Number(type=kind, value=value):
            assert value is not None
            bits = encode_value(kind, value)
            data[at : at + len(bits)] = bits
        case Array():
            bits = bytes_of(content)
            data[at : at + len(bits)] = bits
        case TensorMap():
            data[at : at + 128] = b"\xab" * 128  # what the driver makes is its own
            found["maps"].append({"at": at} | map_words(content))
        case Pointer(align=align, contents=contents):
            data[at : at + 8] = (ADDRESS + align).to_bytes(8, "little")
            word: dict[str, Any] = {"at": at, "align": align}
            if contents:
                (field,) = contents
                assert isinstance(field.content, Array)
                word["contents"] = bytes_of(field.content).hex()
            found["pointers"].append(word)
        case Struct(fields=fields):
            for each in fields:
                _put(each.content, at + each.offset, data, found)


def bytes_of(array: Array) -> bytes:
    """The bytes of an array in memory."""
    return b"".join(encode_value(array.type, value) for value in array.values)


def map_words(given: TensorMap) -> dict[str, Any]:
    """A tensor map as a record describes it: every member is there."""
    sizes = {name: list(getattr(given, name)) for name in ("dims", "box", "strides", "element_strides")}
    words = {"swizzle": given.swizzle, "interleave": given.interleave, "pixels": given.pixels}
    return {"element": given.element} | sizes | words


def write_spool(folder: Path, records: Iterable[Mapping[str, Any]], name: str = "7", **codes: str) -> Path:
    """A folder with the records of one process, and files of PTX by their keys."""
    folder.mkdir(exist_ok=True)
    lines = "".join(f"{json.dumps(each)}\n" for each in (PROCESS, *records))
    (folder / f"{name}.jsonl").write_text(lines, encoding="utf-8")
    for key, text in codes.items():
        (folder / f"{key}.ptx").write_text(text, encoding="utf-8")
    return folder
