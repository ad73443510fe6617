"""The PTX of a launch that was observed: a file of the spool folder, an entry of a fat binary, or a compiler's dump."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from pipesim.bounds import MAX_PTX_BYTES
from pipesim.errors import PipesimError, PtxError
from pipesim.inputs import InputKind
from pipesim.launches.records.read import is_code_file
from pipesim.launches.records.record import LaunchRecord

_CODE = InputKind("PTX", MAX_PTX_BYTES, PtxError, "give the PTX of one module, as its compiler wrote it")
ENTRIES = re.compile(r"\.entry\s+([\w$%.]+)")  #: the names of a text's kernels
_NO_PTX = "no PTX: the process loaded machine code only"


class FoundCode(NamedTuple):
    """The PTX of a kernel and where it comes from, or why there is none."""

    text: str = ""
    origin: str = ""
    reason: str = ""


@dataclass
class Codes:
    """The PTX of records. ``dump``: for the name of a kernel, the texts of a compiler's dump that have it."""

    spool: Path
    dump: Mapping[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    _code_of_file: dict[str, FoundCode] = field(default_factory=dict)

    def code_of(self, record: LaunchRecord) -> FoundCode:
        """The PTX of the kernel of a record."""
        if record.code:
            found = self._code_of_file.get(record.code)
            if found is None:
                found = self._code_of_file[record.code] = self._file(record.code)
            if found.text:
                return found._replace(origin=record.origin)
            return self._code_in_dump(record, found.reason)
        return self._code_in_dump(record, record.why_not or _NO_PTX)

    def _file(self, name: str) -> FoundCode:
        path = self.spool / name
        try:
            if not is_code_file(name) or path.is_symlink():
                raise PtxError(f"{name} is not a file of the folder")
            data = _CODE.read_bytes(path)
            if name.endswith(".entry"):
                from pipesim.launches.images.entry_text import ptx_of_entry

                return FoundCode(ptx_of_entry(data))
            return FoundCode(_text(data))
        except PipesimError as error:
            return FoundCode(reason=f"its PTX cannot be read: {error.cause or error.fact}")

    def _code_in_dump(self, record: LaunchRecord, reason: str) -> FoundCode:
        texts = self.dump.get(record.kernel, ())
        if len({text for _, text in texts}) == 1:
            name, text = texts[0]
            return FoundCode(text, f"{record.origin}, {name}" if record.origin else name)
        if texts:
            return FoundCode("", record.origin, f"{len(texts)} PTX files of the dump have it: {texts[0][0]}, ...")
        return FoundCode("", record.origin, reason)


def ptx_of_file(path: Path) -> str:
    """The text of a PTX file, as a driver reads it. PtxError."""
    return _text(_CODE.read_bytes(path))


def _text(data: bytes) -> str:
    """PTX as text, without what comes after it: a driver takes it up to its first zero byte."""
    try:
        return data.split(b"\0", 1)[0].decode("utf-8")
    except UnicodeDecodeError as error:
        raise PtxError("this is not PTX", cause=f"it is not text in UTF-8: byte {error.start:,}") from None
