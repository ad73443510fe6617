"""Core dumps with damage: a few bytes of headers, tables, registers or code, or a cut end."""

import random
import struct

from pipesim.answers.autopsy.autopsy import autopsy_of
from pipesim.coredump.dump import CoreDump
from pipesim.coredump.elf import parse_elf
from pipesim.errors import CoreDumpError
from pipesim.report.pages.programs.autopsy import autopsy_lines

HEADER, ROW = 64, 64
FIELDS = (4, 24, 32, 40, 44, 56)  #: of a section's header: type, offset, size, link, info, bytes of an entry


def damaged(data: bytes, seed: int) -> bytes:
    """The dump with the damage of this seed."""
    choice, made = random.Random(seed), bytearray(data)
    (start,) = struct.unpack_from("<Q", made, 40)
    for _ in range(choice.choice((1, 1, 2, 4, 16))):
        row = start + ROW * choice.randrange((len(made) - start) // ROW)
        offset, size = struct.unpack_from("<QQ", data, row + 24)
        field = row + choice.choice(FIELDS) + choice.randrange(4)
        inside = offset + choice.randrange(min(size, 1 << 16)) if size > 0 and offset + size <= len(made) else field
        at = choice.choice((choice.randrange(HEADER) if choice.random() < 0.2 else field, *[inside] * 8))
        made[at] = choice.choice((0, 1, 255, choice.randrange(256), made[at] ^ 1 << choice.randrange(8)))
    if choice.random() < 0.15:
        del made[choice.randrange(len(made)) :]
    return bytes(made)


def outcome(data: bytes) -> str:
    """Whether its autopsy has findings, none, or is refused in one sentence. Any other exception is a mistake."""
    try:
        report = autopsy_of(CoreDump(parse_elf(data, "core"), "core"), "core")
        autopsy_lines(report, 80)
    except CoreDumpError:
        return "refused"
    return "findings" if report.findings else "none"
