"""Write what the GPU said of recording into docs/recording.md: ``tools/recording_doc.py [--from DIR] [--check]``.

``--from``: takes the archives of ``recording_runs.py`` in DIR first: ``recording_cost.json`` and
``recorded_kernels.json`` in ``traces/h200`` are replaced by theirs, and so are the traces below ``traces/h200/ptx``.
With ``--kernels``, the folder of families that was recorded, every kernel of Triton and Gluon gets its PTX and launch
file beside its trace; of the others, whose sources are not ours, only traces are kept, in a folder of their family.
Then the blocks of the page, from ``<!-- recorded: cost -->`` or ``<!-- recorded: kernels -->`` to ``<!-- end -->``,
are made of these files; a block whose file is missing stays as it is. With ``--check`` nothing is written, and the
exit code is 1 if the page is not what this gives.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # works from a checkout that is not installed

from pipesim.conform.agreement import Agreement

ROOT = Path(__file__).resolve().parents[1]
PAGE, STORED = ROOT / "docs" / "recording.md", ROOT / "traces" / "h200"
COST, KERNELS = "recording_cost.json", "recorded_kernels.json"
SM_GHZ = 1.98  #: under load (docs/hopper.md)
#: Cycles a record that tools of others state of theirs (hardware-facts; each with its own record).
PEERS = (12, 33)
RINGS = "producer_consumer"
RESULTS, HANG = "results.json", "hang_"
#: Families whose kernels are compiled from sources of this repository (tools/corpus/kernels): their PTX is kept.
OURS = ("gluon", "triton")
BESIDE = (".ptx", ".json")
Rows = list[dict[str, Any]]
_COLUMNS = ("kernel", "compiler", "records", "places", "events", "registers", "spilled", "same", "beside its PTX",
            "longer by", "cycles a record")  # fmt: skip


def take(folder: Path, stored: Path, kernels: Path | None = None) -> list[str]:
    """Put what the archives hold in its place; the names of what was written."""
    cost, recorded = _unpacked(folder / "cost.tar.gz"), _unpacked(folder / "kernels.tar.gz")
    written = {stored / COST: cost[COST]} if COST in cost else {}
    if RESULTS in recorded:
        written[stored / KERNELS] = recorded[RESULTS]
    for name, content in recorded.items():
        if name.endswith(".parquet"):
            target = _target(name, stored / "ptx")
            if kernels is not None:
                written[target] = content
                if target.parent.name == "ptx":
                    source = kernels / ("hang" if name.startswith(HANG) else target.name.partition("-")[0])
                    file = name.removesuffix(".parquet")
                    file = file if name.startswith(HANG) else file.partition("-")[2]
                    written |= {target.with_suffix(end): (source / f"{file}{end}").read_bytes() for end in BESIDE}
            elif target.is_file():
                written[target] = content
    for path, content in written.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return sorted(str(path.relative_to(stored)) for path in written)


def _unpacked(archive: Path) -> dict[str, bytes]:
    """The files of an archive by their last names; none if there is no archive."""
    if not archive.is_file():
        return {}
    with tarfile.open(archive) as packed:
        streams = {Path(each.name).name: packed.extractfile(each) for each in packed.getmembers() if each.isfile()}
        return {name: stream.read() for name, stream in streams.items() if stream is not None}


def _target(name: str, folder: Path) -> Path:
    """Where a trace of ``record_kernels.py`` is stored: FAMILY-KERNEL-sm_90a.parquet or hang_FAMILY_KERNEL.parquet."""
    stem = name.removesuffix(".parquet").removesuffix("-sm_90a")
    hangs = stem.startswith(HANG)
    family, _, kernel = stem.removeprefix(HANG).partition("_" if hangs else "-")
    file = f"{kernel}-hangs.parquet" if hangs else f"{kernel}.parquet"
    return folder / f"{family}-{file}" if family in OURS else folder / family / file


def cost_lines(document: dict[str, Any]) -> Iterator[str]:
    """The table of costs: a row for each ring, and for each kernel with an encoding."""
    yield "| kernel | records | cycles a record | the kernel takes longer by |"
    yield "|---|---|---|---|"
    rows = [row for row in document["rows"] if "percent" in row]
    for row in rows:
        if row["kernel"] == RINGS and "cycles_a_record" in row:
            each, percent = row["cycles_a_record"], row["percent"]["median"]
            aim = f"{each['median']:.1f} ({each['low']:.1f} to {each['high']:.1f}; aim {row['aim']:.0f})"
            yield f"| ring of {row['name']} | {row['encoding']} | {aim} | {percent:.1f} % |"
    for kernel in dict.fromkeys(row["kernel"] for row in rows if row["kernel"] != RINGS):
        for encoding in dict.fromkeys(row["encoding"] for row in rows):
            own = [row["percent"]["median"] for row in rows if (row["kernel"], row["encoding"]) == (kernel, encoding)]
            if own:
                spread = f"{statistics.median(own):.1f} % ({min(own):.1f} to {max(own):.1f}, {len(own)} configurations)"
                yield f"| {kernel} | {encoding} | | {spread} |"
    yield ""
    yield f"Other recorders for such kernels state {' and '.join(map(str, PEERS))} cycles a record. Medians of"
    yield f"{document['repetitions']} pairs of launches, without and with the recorder in turn, on an"
    yield f"{document['device']} (driver {document['driver']}): `python tools/recording_cost.py`."


def kernel_lines(rows: Rows) -> Iterator[str]:
    """The table of kernels that were recorded from their PTX."""
    yield f"| {' | '.join(_COLUMNS)} |"
    yield "|" + "---|" * len(_COLUMNS)
    for row in sorted(rows, key=lambda row: (row["family"], row["file"])):
        if "error" not in row and row["agreement"] != "refused":
            yield _kernel_row(row)
    left = [f"`{row['file'].removesuffix('-sm_90a')}` ({_why(row)})" for row in rows if _why(row)]
    yield ""
    yield f"Not recorded: {', '.join(left)}." if left else "All kernels that were tried were recorded."
    yield "A record's cycles: what the launch takes longer, over the records of the warp that makes most."


def _why(row: dict[str, Any]) -> str:
    if "error" in row:
        return " ".join(str(row["error"]).split())[-120:]
    return " ".join(str(row["why"]).split())[:120] if row["agreement"] == "refused" else ""


def _kernel_row(row: dict[str, Any]) -> str:
    hangs = row["file"].startswith(HANG)
    name = row["file"].removesuffix("-sm_90a").removeprefix(HANG)
    same = {True: "yes", False: "no"}.get(row.get("identical"), "–")  # type: ignore[arg-type]
    longer = each = "–"
    if row.get("queued"):  # else the host's time between launches is in it
        added = row["recorded_ns"] - row["plain_ns"]
        longer = f"{100 * added / row['plain_ns']:.1f} %"
        each = f"{added * SM_GHZ / row['busiest']:.1f}" if row.get("busiest") else "–"
    registers = " → ".join(map(str, row["registers"]))
    stands = "hangs, as the model does" if hangs and row["agreement"] == Agreement.HANGS_TOO.value else row["agreement"]
    cells = [name, "mutant" if hangs else row["family"], row["encoding"], row["sites"], f"{row['events']:,}", registers,
             row["spills"][1] - row["spills"][0], same, stands, longer, each]  # fmt: skip
    return f"| {' | '.join(map(str, cells))} |"


BLOCKS: dict[str, tuple[str, Callable[[Any], Iterator[str]]]] = {
    "cost": (COST, cost_lines),
    "kernels": (KERNELS, kernel_lines),
}


def filled(page: str, stored: Path) -> str:
    """The page with its blocks as the stored files say. ValueError if a block is missing."""
    for name, (file, lines) in BLOCKS.items():
        pattern = re.compile(rf"(<!-- recorded: {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        if not pattern.search(page):
            raise ValueError(f"the page has no block {name}")
        path = stored / file
        if path.is_file():
            text = "\n".join(lines(json.loads(path.read_text(encoding="utf-8")))) + "\n"
            page = pattern.sub(lambda found, text=text: f"{found[1]}{text}{found[2]}", page)  # type: ignore[misc]
    return page


def main(arguments: list[str] | None = None) -> int:
    """Take, and write or check."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--from", type=Path, dest="folder", metavar="DIR", help="archives of recording_runs.py")
    parser.add_argument("--kernels", type=Path, metavar="DIR", help="what was recorded: keep traces that are new, too")
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 if the page is stale")
    options = parser.parse_args(arguments)
    if options.folder is not None:
        print("\n".join(take(options.folder, STORED, options.kernels)))
    page = PAGE.read_text(encoding="utf-8")
    made = filled(page, STORED)
    if options.check:
        return int(made != page)
    PAGE.write_text(made, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
