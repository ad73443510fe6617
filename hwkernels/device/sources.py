"""Where the CUDA sources of this package lie: one place, so that a kernel includes a header by its bare name."""

from pathlib import Path

from pipesim.errors import UsageError

PACKAGE = Path(__file__).resolve().parents[1]
RECORDER = PACKAGE / "source_recorder"
PTX_HEADERS = PACKAGE / "ptx_headers"
TWINS = PACKAGE / "twins"
INTERPRETER = PACKAGE / "interpreter"
TWIN_FOLDERS = (TWINS / "common", TWINS / "hopper")

#: Folders whose headers every kernel of this package can include. No two of their files have the same name.
HEADER_FOLDERS = (RECORDER, PTX_HEADERS, INTERPRETER, *TWIN_FOLDERS)
HEADERS = frozenset({".cuh", ".h"})


def source_file(name: str) -> Path:
    """The kernel, header or table of this file name. UsageError if the package has none."""
    for folder in HEADER_FOLDERS:
        if (folder / name).is_file():
            return folder / name
    raise UsageError(f"pipesim has no CUDA source {name}", correction="give the name of a file below hwkernels")


def headers() -> tuple[Path, ...]:
    """Every header and table of the package, sorted by folder and name."""
    return tuple(path for folder in HEADER_FOLDERS for path in sorted(folder.iterdir()) if path.suffix in HEADERS)
