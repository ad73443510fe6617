"""The kernels of ``tests/hang/kernels``, which hang on a GPU, as sources without host code, with their launch files."""

import json
import re
import shutil
from math import prod
from pathlib import Path

from hwkernels.device.sources import PTX_HEADERS
from tests.support.paths import ROOT

HANGS = ROOT / "tests" / "hang" / "kernels"
_WORDS = {"one_of_64": [9 if cta == 37 else 8 + cta % 3 * 2 for cta in range(64)]}  #: filled before the launch
_LAUNCH = re.compile(
    r"(\w+)<<<(\w+|dim3\([^)]*\)), (\w+)>>>\((.*)\);|launch_clusters\((\w+), (\w+), (\w+), (\w+), (.*)\);"
)


def write_hanging(name: str, folder: Path) -> None:
    """A kernel of tests/hang/kernels with its headers and its launch file, without its host code."""
    device, _, host = (HANGS / f"{name}.cu").read_text(encoding="utf-8").partition("\nvoid launch(")
    found = _LAUNCH.search(host)
    assert found is not None, name
    plain = found[1] is not None
    grid, block, given = (found[2], found[3], found[4]) if plain else (found[5], found[7], found[9])
    (folder / f"{name}.cu").write_text(f"{device}\n", encoding="utf-8")
    header = (HANGS / "hang.cuh").read_text(encoding="utf-8").replace("#include <cstdio>\n", "")
    (folder / "hang.cuh").write_text(header.partition("\n// A launch with clusters")[0], encoding="utf-8")
    for each in PTX_HEADERS.glob("*.cuh"):
        shutil.copy(each, folder)
    parameters = [_parameter(each, _WORDS.get(name, [0] * 32)) for each in given.split(", ")]
    sizes = {
        "grid": list(map(int, re.findall(r"(?<!\w)\d+", grid))),
        "block": [int(block)],
        "cluster": [1 if plain else int(found[6])],
    }
    launch = {"format": "pipesim-launch", "version": 1, **sizes, "parameters": parameters}
    (folder / f"{name}.json").write_text(json.dumps(launch), encoding="utf-8")


def _parameter(given: str, values: list[int]) -> dict[str, object]:
    """An argument of a launch: a number, or memory, of which the words have these values."""
    number = re.fullmatch(r"[\d *+/]+", given.replace("TILE", "256").removesuffix("u"))
    if number is not None:
        value = sum(prod(map(int, each.split("*"))) for each in number[0].replace("256 / 2", "128").split("+"))
        return {"kind": "value", "type": "s32", "value": value}
    words = [{"offset": 0, "kind": "array", "type": "u32", "values": values}] if "words" in given else []
    return {"kind": "pointer", "contents": words}
