"""A kernel's PTX file and its launch file, as a command line names them, to a flat program."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pipesim.bounds import MAX_PTX_BYTES
from pipesim.errors import LaunchFileError, PtxError
from pipesim.inputs import InputKind
from pipesim.ptx.extract import Extraction, entry_of, extract
from pipesim.ptx.launch.file import LAUNCH_FILE, read_launch
from pipesim.ptx.launch.settings import with_settings
from pipesim.ptx.text.read import read_module

_PTX = InputKind("PTX file", MAX_PTX_BYTES, PtxError, "give the PTX of one module, as its compiler wrote it")


def read_kernel(ptx: Path, launch: Path | None = None, sets: Sequence[str] = ()) -> Extraction:
    """Read a PTX file and the values of one launch: by default the file beside it that ends with ``.json``.

    ``sets``: ``OFFSET=VALUE`` for words of the parameters, in bytes from the first. Raises PtxError or
    LaunchFileError.
    """
    text = _PTX.read_text(ptx)
    launch = ptx.with_suffix(".json") if launch is None else launch
    if not launch.is_file():
        raise LaunchFileError(
            f"there is no launch file {launch}",
            cause="a kernel is read with the values of one launch: its grid, its block and its parameters",
            correction="name it with --launch FILE",
        )
    given = read_launch(LAUNCH_FILE.read_text(launch), str(launch))
    module = read_module(text, ptx.name, given.entry)  # a file may have many kernels
    return extract(module, with_settings(given, entry_of(module, given), sets) if sets else given)
