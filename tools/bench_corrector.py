"""A loop without a person: 30 broken kernels, and a corrector that knows nothing but what the tool prints.

Each kernel is compiled and checked (``--format brief``); what ``--fix --write`` writes, or shows as a difference, is
applied to its source, and it is compiled again, at most 5 times. ``python tools/bench_corrector.py`` prints a row for
each kernel and the share that was proved in the end; with names, these alone. Tokens: 4 bytes of output are counted as
one. Needs NVRTC (``pip install 'pipesim[gpu]'``), and no GPU.
"""

import argparse
import contextlib
import io
import json
import re
import sys
import tempfile
from dataclasses import dataclass
from itertools import dropwhile, takewhile
from pathlib import Path

from hwkernels.device.compile import compile_ptx
from pipesim.cli.main import main as pipesim
from pipesim.errors import CompileError
from tests.support.hanging_kernels import HANGING, write_hanging
from tests.support.plain_cuda import PLAIN

MOST_TRIES = 5
BYTES_A_TOKEN = 4
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? .*")


@dataclass
class Corrected:
    """How it went: changes of the source, bytes that were printed, and how it ended."""

    name: str
    ended: str = ""
    tries: int = 0
    printed: int = 0


def corrected(name: str, defines: dict[str, int]) -> Corrected:
    """Correct the kernel in the current folder by what is printed of it."""
    found = Corrected(name)
    source, ptx = Path(f"{name}.cu"), Path(f"{name}.ptx")
    while True:
        try:
            ptx.write_text(compile_ptx(source, defines), encoding="utf-8")
        except CompileError:
            found.ended = "no longer compiles"
            return found
        document = json.loads(_said(found, f"check {ptx} --format brief"))
        if "error" in document:
            found.ended = document["error"]["fact"]
            return found
        brief = document["protocols"][ptx.name]["brief"]
        if brief["verdict"] != "refuted" or found.tries == MOST_TRIES:
            found.ended = brief["verdict"] if brief["verdict"] != "refuted" else f"{MOST_TRIES} tries"
            found.ended = "not found" if brief["verdict"] == "proved" and not found.tries else found.ended
            return found
        if not _apply(_said(found, f"check {ptx} --fix --write")):
            found.ended = "a sentence alone" if brief["correction"] else "no correction"
            return found
        found.tries += 1


def _said(found: Corrected, line: str) -> str:
    """What a command prints, counted."""
    stream = io.StringIO()
    with contextlib.redirect_stdout(stream), contextlib.redirect_stderr(io.StringIO()):
        pipesim(line.split())
    found.printed += len(stream.getvalue().encode())
    return stream.getvalue()


def _apply(diff: str) -> bool:
    """Apply the first difference that is shown, if it is not in the file yet; False if none is."""
    lines = list(dropwhile(lambda each: not each.startswith("--- a/"), diff.splitlines()))
    if not lines:
        return False
    path = Path(lines[0].removeprefix("--- a/"))
    found = _HUNK.fullmatch(lines[2])
    assert found is not None
    hunk = list(takewhile(lambda each: each[:1] in ("+", "-", " "), lines[3:]))
    hunk = list(takewhile(lambda each: not each.startswith("--- a/"), hunk))
    old, new = ([each[1:] for each in hunk if each[0] in kept] for kept in (" -", " +"))
    text, first = path.read_text(encoding="utf-8").splitlines(), int(found[1]) - 1
    if text[first : first + len(old)] == old:  # a proposal, which is not written
        text[first : first + len(old)] = new
        path.write_text("\n".join(text) + "\n", encoding="utf-8")
    return True


def main(argv: list[str] | None = None) -> int:
    """Correct the kernels, and print how it went."""
    parser = argparse.ArgumentParser(description=__doc__)
    plain = [each.name for each in PLAIN]
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join((*plain, *HANGING))}")
    names = parser.parse_args(argv).names or [*plain, *HANGING]
    rows = []
    for name in names:
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            if name in plain:
                PLAIN[plain.index(name)].write(Path(folder), wrong=True)
            else:
                write_hanging(name, Path(folder))
            rows.append(found := corrected(name, {"WRONG": 1}))
        print(f"| `{name}` | {found.ended} | {found.tries} | {found.printed:,} | {found.printed // BYTES_A_TOKEN:,} |")
    good = [each for each in rows if each.ended == "proved"]
    tries, size = sum(each.tries for each in good), sum(each.printed for each in rows)
    print(f"{len(good)} of {len(rows)} proved, in {tries / max(len(good), 1):.1f} changes each; {size:,} bytes printed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
