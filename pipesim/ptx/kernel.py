"""A kernel's PTX file and its launch file, as a command line names them, to a flat program."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pipesim.errors import LaunchFileError, PtxError
from pipesim.ptx.extract import Extraction, entry_of, extract
from pipesim.ptx.launch.file import read_launch
from pipesim.ptx.launch.settings import with_settings
from pipesim.ptx.text.read import read_module


def read_kernel(ptx: Path, launch: Path | None = None, sets: Sequence[str] = ()) -> Extraction:
    """Read a PTX file and the values of one launch: by default the file beside it that ends with ``.json``.

    ``sets``: ``OFFSET=VALUE`` for words of the parameters, in bytes from the first. Raises PtxError or
    LaunchFileError.
    """
    text = _text(ptx, "PTX")
    launch = ptx.with_suffix(".json") if launch is None else launch
    if not launch.is_file():
        raise LaunchFileError(
            f"there is no launch file {launch}",
            cause="a kernel is read with the values of one launch: its grid, its block and its parameters",
            correction="name it with --launch FILE",
        )
    module = read_module(text, ptx.name)
    given = read_launch(_text(launch, "launch"), str(launch))
    return extract(module, with_settings(given, entry_of(module, given), sets) if sets else given)


def _text(path: Path, what: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise PtxError(f"the {what} file {path} cannot be read", cause="it is not a text file") from None
    except OSError as error:
        raise PtxError(
            f"the {what} file {path} cannot be read",
            cause=error.strerror or str(error),
            correction="check the path",
        ) from None
