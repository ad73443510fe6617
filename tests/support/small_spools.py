"""Spool folders of small kernels, and what is gathered from them."""

from pathlib import Path
from typing import Any

from pipesim.answers.views.launches import LaunchesReport
from pipesim.launches.files.gather import gather
from pipesim.ptx.launch.values import Launch, Number, Parameter, Pointer
from tests.support.paths import ROOT
from tests.support.spools import record_of, write_spool

KERNELS = ROOT / "tests" / "ptx" / "kernels"
HEAD = ".version 8.7\n.target sm_90a\n.address_size 64\n"
MANGLED = "_ZN7cutlass13device_kernelINS_4gemm6kernel13GemmUniversalIN4cute5tupleIJiiiiEEEEEEvNT_6ParamsE"


def ptx_of(*names: str, body: str = "bar.sync 0;") -> str:
    """A text with these kernels, each of a pointer and a number."""
    return HEAD + "".join(f".visible .entry {each}(.param .u64 a, .param .u32 n) {{ {body} ret; }}\n" for each in names)


def launch_of(name: str = "k", n: int = 1, align: int = 256, grid: int = 2) -> Launch:
    """A launch of one of them."""
    parameters = (Parameter("", Pointer(align)), Parameter("", Number("u32", n)))
    return Launch(name, (grid, 1, 1), (64, 1, 1), parameters=parameters)


def record(name: str = "k", n: int = 1, align: int = 256, grid: int = 2, **more: Any) -> dict[str, Any]:
    """Its record."""
    return record_of(launch_of(name, n, align, grid), **more)


def count(kernel: str = "k", launches: int = 5, distinct: int = 1, left_out: int = 0, **more: Any) -> dict[str, Any]:
    """How often a kernel was launched."""
    numbers = {"launches": launches, "distinct": distinct, "left_out": left_out}
    return {"kind": "count", "kernel": kernel, "image": "i"} | numbers | more


def gathered(tmp_path: Path, records: list[dict[str, Any]], **codes: str) -> tuple[LaunchesReport, dict[str, str]]:
    """The report on these records, and the texts of its files."""
    return gather(write_spool(tmp_path / "spool", records, **(codes or {"i": ptx_of("k")})), folder="out")
