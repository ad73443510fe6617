"""What is offered for mistakes that were planted in right kernels and protocols, compared with what was meant.

``python tools/planted_mistakes.py [PART OF A NAME ...] [--right] [--table]`` prints for each mistake of
``tests/support/mistakes/planted.py`` what is found, whether a finding or correction names the changed line, and each
correction that is offered with its word: *right* names all parts of what was meant; *same* has been said beforehand, or
decided below, to do the same; *beside* names neither a wrong object nor all of the right one; *misdirects* names
another role or barrier, or serialises what was not; *unjudged* has to be decided. ``--table`` prints the counts alone;
``--right`` checks that the kernels and protocols are proved without their mistakes, ``--quick`` that they are not with
them, without looking for corrections. Public kernels are read from ``~/.cache/pipesim-corpus``; those that are not
there are left out, as are those that need NVRTC where it is not installed.
"""

from __future__ import annotations

import argparse
import difflib
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # works from a checkout that is not installed

from hwkernels.device.compile import compile_ptx
from hwkernels.device.sources import headers
from hwkernels.twins import find_twin
from pipesim.errors import MissingExtraError
from pipesim.ptx.launch.file import launch_json
from pipesim.targets import find
from tests.support.mistakes.planted import KERNEL_MISTAKES, PROTOCOL_MISTAKES, Planted
from tests.support.twin_launches import launch_of
from tools.corpus.environment import CACHE

ROOT = Path(__file__).resolve().parents[1]
_NEAR = 3  #: lines from the changed one at which a place in a source still is the right one
_SECONDS = 120
#: Sentences that say something else than what was meant, decided by hand: mistake, pattern, word, reason.
JUDGED = (
    ("persistent_scheduler: first phase", "^compute waits for throttle_full", "misdirects", "this wait is right"),
    ("epilogue_residual: a store too many", "commit_group in every", "misdirects", "the groups are right as they are"),
    ("cooperative: the last stage", "^consumer arrives on empty after its last", "right", "empty is what is meant"),
    ("gemm_sm100_blockwise: no commit", "count of 4 instead of 5", "same", "the epilogue arrives after the product"),
    ("cutlass_sm100: a role does not", "count of 64 instead of 96", "same", "no role needs the arrive of mma"),
    ("gemm_tma_ws: the last stage", "^initialise .* the program never does", "same", "it has no name without an init"),
    (
        "gemm_tma_fp8: the product before",
        "stage by stage|carries stage",
        "same",
        "the last is that of the loop's state",
    ),
    ("relay: gives the other", "^store uses named barriers 2 and 3 in the other", "right", "at its bar_arrive"),
    ("gemm_sm100_blockwise: scales", "executes the fence", "misdirects", "the read of the scales comes too late"),
    ("cutlass_sm100: the MMA warp", "barrier of its own", "misdirects", "the two roles have to meet"),
    ("exchange: one CTA has an arrive", "^no role arrives on empty", "beside", "right barrier, but no role is named"),
    ("mojo gemm sm_100: mask", "^a mask has only the lowest", "beside", "right, but neither role nor copy is named"),
)


@dataclass(frozen=True)
class Offered:
    """What pipesim says about one mistake."""

    verdict: str
    kinds: tuple[str, ...]
    at_line: bool
    said: tuple[tuple[str, str], ...]  #: word and sentence

    @property
    def word(self) -> str:
        """The best word of its corrections."""
        words = {word for word, _ in self.said}
        return next((word for word in ("right", "same", "misdirects", "unjudged", "beside") if word in words), "none")


def changed(planted: Planted, *, right: bool = False) -> tuple[str, str]:
    """The file's text with the mistake, and as it is."""
    path = _file(planted)
    text = was = path.read_text(encoding="utf-8")
    for old, new in planted.edits.items():
        assert old in text, f"{planted.name}: {path.name} has no {old!r}"
        text = text.replace(old, new)
    return (was if right else text), was


def _file(planted: Planted) -> Path:
    name = planted.where.rpartition(".py:")[0] + ".py" if ".py:" in planted.where else planted.where
    return CACHE / "kernels" / name.removeprefix("corpus/") if name.startswith("corpus/") else ROOT / name


def written(planted: Planted, folder: Path, *, right: bool = False) -> str:
    """The target for ``pipesim check``, in this folder."""
    path, (text, _) = _file(planted), changed(planted, right=right)
    new = folder / path.name
    new.write_text(text, encoding="utf-8")
    if path.suffix == ".py":
        return f"{new}:{planted.where.rpartition(':')[2]}"
    launch = path.with_suffix(".json")
    if launch.is_file():
        shutil.copy(launch, folder)
    if path.suffix == ".cu":
        defines: dict[str, int] = {}
        if not launch.is_file():
            twin, params = find_twin(path.stem), dict(find(path.stem).defaults)
            (folder / launch.name).write_text(launch_json(launch_of(twin, params)), encoding="utf-8")
            defines = {**twin.defines(params), "PIPESIM_TRACE": 0}
            for header in headers():
                shutil.copy(header, folder)
        new.with_suffix(".ptx").write_text(compile_ptx(new, defines), encoding="utf-8")
    return str(new.with_suffix(".ptx"))


def offered(planted: Planted, *, quick: bool = False, right: bool = False) -> Offered | None:
    """Ask pipesim, in a process of its own, as a user does; None without the kernel or NVRTC on this machine."""
    with tempfile.TemporaryDirectory() as name:
        try:
            words = [written(planted, Path(name), right=right), "--json", "--time-limit", str(_SECONDS)]
        except (FileNotFoundError, MissingExtraError):
            return None
        words += [word for key, value in planted.sizes.items() for word in ("-p", f"{key}={value}")]
        words += ["--quick"] if quick else []
        command = [sys.executable, "-m", "pipesim", "check", *words]
        done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    answer = json.loads(done.stdout)
    report = answer.get("report")
    if report is None:
        return Offered(answer["error"]["fact"], (), at_line=False, said=())
    every = list(dict.fromkeys(_sentences(report)))
    said = tuple(dict.fromkeys((word_of(planted, sentence, line), sentence) for sentence, line in every))
    kinds = tuple(dict.fromkeys(each["kind"] for each in answer["findings"]))
    places = json.dumps([answer["findings"], every])
    return Offered(report["verdict"], kinds, any(re.search(at, places) for at in _places(planted)), said)


def _sentences(report: dict[str, object]) -> Iterator[tuple[str, str]]:
    """Each correction with its line; of a finding without one what its rule says in general."""
    for refuted in report["refutations"]:  # type: ignore[attr-defined]
        found = [(each["said"], each["line"]) for each in refuted.get("corrections", ())]
        general = refuted["finding"].get("correction", "")
        yield from found or ([(general, "")] if general else [])


def word_of(planted: Planted, sentence: str, line: str) -> str:
    """The word of a correction, of which ``line`` is the author's line."""

    def names(parts: Sequence[str]) -> bool:
        return all(re.search(part, f"{sentence} [{line.rpartition('/')[2]}]") for part in parts)

    if names(planted.parts):
        return "right"
    if any(names(parts) for parts in planted.also):
        return "same"
    judged = (word for name, said, word, _ in JUDGED if planted.name.startswith(name) and re.search(said, sentence))
    return next(judged, "unjudged")


def _places(planted: Planted) -> Iterator[str]:
    """Patterns of the places at which a report may say that the mistake is."""
    text, was = changed(planted)
    new, old, path = text.split("\n"), was.split("\n"), _file(planted)
    same = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes() if len(old) != len(new) else ()
    lines = [first for word, *_, first, _ in same if word != "equal"]
    lines += [n for n, (a, b) in enumerate(zip(new, old, strict=False)) if not same and a != b]
    if path.suffix != ".ptx":
        near = {line for first in lines for line in range(first + 1 - _NEAR, first + 2 + _NEAR)}
        yield from (rf"{re.escape(path.name)}:{line}\b" for line in sorted(near))
        return
    names = dict(re.findall(r'^\s*\.file\s+(\d+)\s+"(?:[^"]*/)?([^"/]+)"', was, re.MULTILINE))
    for first in lines:
        yield rf"{re.escape(path.name)}(:|, lines? ([\d, and]* )?){first + 1}\b"
        loc = next((line for line in reversed(old[: first + 1]) if re.match(r"\s*\.loc\s", line)), "")
        for file, line in re.findall(r"(?:loc|inlined_at)\s+(\d+) (\d+)", loc):
            yield rf"{re.escape(names[file])}:{line}\b"


def main() -> int:
    """Ask for each, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="parts of names of mistakes (default all)")
    parser.add_argument("--quick", action="store_true", help="the verdicts alone")
    parser.add_argument("--right", action="store_true", help="without the mistakes: the verdicts alone")
    parser.add_argument("--table", action="store_true", help="the counts alone")
    options = parser.parse_args()
    for title, mistakes in (("kernels read from PTX", KERNEL_MISTAKES), ("described protocols", PROTOCOL_MISTAKES)):
        table: Counter[str] = Counter()
        for planted in mistakes:
            if options.names and not any(name in planted.name for name in options.names):
                continue
            found = offered(planted, quick=options.quick or options.right, right=options.right)
            if found is None:
                table["not here"] += 1
                continue
            table[found.word] += 1
            table["at its line"] += found.at_line
            table["with one that misdirects"] += any(word == "misdirects" for word, _ in found.said)
            if not options.table:
                kinds, at = ", ".join(found.kinds), "at its line" if found.at_line else "elsewhere"
                print(f"{found.word:10s} {planted.name}: {found.verdict}, {kinds}, {at}\n    meant: {planted.meant}")
                print("".join(f"    {word}: {sentence}\n" for word, sentence in found.said), end="", flush=True)
        print(f"{title}: " + ", ".join(f"{count} {word}" for word, count in sorted(table.items())), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
