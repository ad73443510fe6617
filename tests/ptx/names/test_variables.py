"""An array of barriers, or of tiles, that is declared ``__shared__`` has the name of its declaration."""

import json
from pathlib import Path

import pytest

from pipesim.ptx.kernel import read_kernel
from pipesim.ptx.names.barriers import variable_name

KERNEL = """\
.version 8.7
.target sm_90a
.address_size 64
{lines}.global .align 16 .b8 data[4096];
.visible .entry kernel()
{{
.reg .b32 %r<6>;
.shared .align 16 .b8 _ZZ6kernelvE4full[16];
.shared .align 8 .b8 _ZZ6kernelvE4done[8];
.shared .align 16 .b8 _ZZ6kernelvE5other_0[40];
.shared .align 128 .b8 _ZZ6kernelvE4tile[1024];
{body}
ret;
}}
"""
INIT = "mbarrier.init.shared.b64 [{}], 1;"
COPY = "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [{}], [data], {}, [_ZZ6kernelvE4done];"
FULL, DONE = [INIT.format(f"_ZZ6kernelvE4full+{at}") for at in (8, 0)], INIT.format("_ZZ6kernelvE4done")


def written(folder: Path, body: list[str], source: str = "") -> Path:
    ptx = folder / "k.ptx"
    lines = f'.file 1 "{folder}/k.cu"\n' if source else ""
    ptx.write_text(KERNEL.format(lines=lines, body="\n".join([".loc 1 1 5", *body] if source else body)))
    (folder / "k.cu").write_text(source)
    launch = {"format": "pipesim-launch", "version": 1, "entry": "kernel", "grid": [1], "block": [1], "parameters": []}
    ptx.with_suffix(".json").write_text(json.dumps(launch))
    return ptx


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("_ZZ4ringPKfPfiE4full", "full"),
        ("_ZZ4ringILi3EEvPKfE4full_0", "full"),
        ("_ZZN2ns1E4ringEvE5full1__12_", "full1"),
        ("_ZL4full", "full"),
        ("_Z4full", "full"),
        ("tile", "tile"),
        ("_ZN2ns4fullE", ""),
        ("_ZZ4ringvE9full", ""),
        ("_ZZ4ringvE4full$0", ""),
        ("a$b", ""),
    ],
)
def test_what_a_symbol_says(symbol: str, name: str) -> None:
    assert variable_name(symbol) == name


def names_of(ptx: Path) -> dict[int, str]:
    made = read_kernel(ptx)
    pairs = zip(made.places, made.program.barriers, strict=True)
    return {offset: f"{each.name}[{each.stage}]" for (_, offset), each in pairs}


@pytest.mark.parametrize("source", ["", "for (i) { init(full + i, 1); other(&done); }"])
def test_barriers_of_arrays(source: str, tmp_path: Path) -> None:
    body = [*FULL, DONE] if source else [" ".join(FULL), DONE]
    assert names_of(written(tmp_path, body, source)) == {0: "full[0]", 8: "full[1]", 16: "done[0]"}


@pytest.mark.parametrize(
    ("body", "source"),
    [
        (FULL, "init(&full.first, 1); init(&full.second, 1);"),
        (FULL, ""),
        ([INIT.format("_ZZ6kernelvE5other_0+8")], ""),
        ([INIT.format(f"_ZZ6kernelvE5other_0+{at}") for at in (0, 16)], ""),
    ],
    ids=["a structure", "perhaps two rings", "not from its beginning", "with something between them"],
)
def test_of_what_may_be_no_array_the_line_is_said(body: list[str], source: str, tmp_path: Path) -> None:
    names = names_of(written(tmp_path, body, source))
    assert names
    assert all(each.startswith(("k.cu:1", "k.ptx:")) for each in names.values())


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ((512, 512), ["tile 512 2"]),
        ((256, 256), ["tile 256 2"]),
        ((512, 256), ["tile from k.ptx:14 256 1", "tile from k.ptx:13 512 1"]),
    ],
)
def test_tiles_of_arrays(sizes: tuple[int, ...], expected: list[str], tmp_path: Path) -> None:
    at, body = 0, [DONE]
    for nbytes in sizes:
        body.append(COPY.format(f"_ZZ6kernelvE4tile+{at}", nbytes))
        at += nbytes
    tiles = read_kernel(written(tmp_path, body)).program.tiles
    assert sorted(f"{each.name} {each.nbytes} {each.slots}" for each in tiles) == sorted(expected)
