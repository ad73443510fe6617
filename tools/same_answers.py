"""Whether a change leaves every answer as it was: ``tools/same_answers.py write FILE``, then ``compare BEFORE AFTER``.

``write`` asks all questions, in one process for each core, and stores the exit code, the document (``--json``) and the
text of each: every protocol at its defaults and at all sizes of ``tests/support/protocol_sizes.py`` (check, run,
verify), every stored trace (diff), and every stored PTX with a launch file (check, run). ``--every N`` asks each Nth
question only. ``compare`` prints what differs, by the members of the documents, with an example of each, and ends with
1 if anything does. Seconds in a text are left out. An hour of two cores; with ``--every 20`` some minutes.
"""

import argparse
import contextlib
import io
import json
import multiprocessing
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # works from a checkout that is not installed

from pipesim.cli.main import main as pipesim
from pipesim.protocols.catalog import BUILT_IN
from pipesim.trace.library import stored_traces, trace_folder
from tests.support.protocol_sizes import SIZES

ROOT = Path(__file__).resolve().parents[1]
PTX_FOLDERS = ("traces", "tests/ptx/kernels", "docs/examples")
_SECONDS = re.compile(r"\d+(\.\d+)? (s|ms)\b")  #: in a text: how long something took here

Answer = dict[str, Any]  #: ``exit_code``, ``document`` (None where there is none) and ``text``


def questions() -> Iterator[tuple[str, ...]]:
    """The words after ``pipesim`` of every question."""
    for name in sorted(BUILT_IN):
        for size in ({}, *SIZES.get(name, ())):
            words = [word for parameter, value in size.items() for word in ("-p", f"{parameter}={value}")]
            yield ("check", name, *words, *(["--quick"] if size else []))
            yield ("run", name, *words)
            yield ("verify", name, *words)
    for folder in PTX_FOLDERS:
        for ptx in sorted((ROOT / folder).rglob("*.ptx")):
            if ptx.with_suffix(".json").is_file():
                yield ("check", str(ptx.relative_to(ROOT)), "--quick")
                yield ("run", str(ptx.relative_to(ROOT)))
    for stored in stored_traces(trace_folder()):
        yield ("diff", str(stored.path.relative_to(ROOT)))


def answer(words: tuple[str, ...]) -> tuple[str, Answer]:
    """What is printed and returned, as text and as a document."""
    code, text = _printed(words)
    _, document = _printed((*words, "--json"))
    try:
        parsed = json.loads(document)
    except ValueError:  # an error, which is text
        parsed = None
    return " ".join(words), {"exit_code": code, "document": parsed, "text": _SECONDS.sub("… s", text)}


def _printed(words: Sequence[str]) -> tuple[int, str]:
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        try:
            code = pipesim(list(words))
        except SystemExit as ended:
            code = int(ended.code or 0)
    return code, out.getvalue()


def write(file: Path, every: int) -> int:
    """Ask, and store a line for each question."""
    asked = list(dict.fromkeys(questions()))[::every]
    with multiprocessing.get_context("fork").Pool() as pool, file.open("w", encoding="utf-8") as stored:
        for number, found in enumerate(pool.imap(answer, asked, chunksize=4), start=1):
            stored.write(json.dumps(found) + "\n")
            print(f"\r{number:,} of {len(asked):,}", end="", file=sys.stderr, flush=True)
    return 0


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Each value of a document with its path."""
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(inner, f"{path}/{key}")
    else:
        yield path, value


def differences(before: Answer, after: Answer) -> Iterator[tuple[str, Any, Any]]:
    """What two answers to one question say otherwise: a key, and both values."""
    first, second = (dict(leaves(each)) for each in (before, after))
    for path in sorted(first.keys() | second.keys()):
        if path not in first or path not in second or first[path] != second[path]:
            yield re.sub(r"/\d+(?=/|$)", "/*", path), first.get(path, "(absent)"), second.get(path, "(absent)")


def compare(before: Path, after: Path) -> int:
    """Print every key with another value, how often, and one example; 1 if there is one."""
    old, new = (dict(json.loads(line) for line in file.read_text(encoding="utf-8").splitlines())
                for file in (before, after))  # fmt: skip
    found: dict[str, list[tuple[str, Any, Any]]] = {}
    both = sorted(old.keys() & new.keys())
    for question in both:
        for key, first, second in differences(old[question], new[question]):
            found.setdefault(key, []).append((question, first, second))
    for key, where in sorted(found.items()):
        question, first, second = where[0]
        print(f"{key}: {len(where):,} times, as in pipesim {question}\n  before: {first}\n  after:  {second}")
    alone = len(old.keys() ^ new.keys())
    print(f"{len(both):,} questions were asked twice, {alone:,} once; {len(found):,} keys differ")
    return int(bool(found))


def main(arguments: Sequence[str] | None = None) -> int:
    """Write, or compare two files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    steps = parser.add_subparsers(dest="step", required=True)
    writing = steps.add_parser("write")
    writing.add_argument("file", type=Path)
    writing.add_argument("--every", type=int, default=1, metavar="N", help="each Nth question")
    comparing = steps.add_parser("compare")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    options = parser.parse_args(arguments)
    if options.step == "write":
        return write(options.file, options.every)
    return compare(options.before, options.after)


if __name__ == "__main__":
    sys.exit(main())
