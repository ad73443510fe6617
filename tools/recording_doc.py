"""Write what the GPU said of recording into docs/recording.md: ``tools/recording_doc.py [--from DIR] [--check]``.

``--from``: takes the archives of ``recording_runs.py`` in DIR first: ``recording_cost.json`` and
``recorded_kernels.json`` in ``traces/h200`` are replaced by theirs, and so are the traces in ``traces/h200/ptx`` whose
kernels are there. Then the blocks of the page, from ``<!-- recorded: cost -->`` or ``<!-- recorded: kernels -->`` to
``<!-- end -->``, are made of these files; a block whose file is missing stays as it is. With ``--check`` nothing is
written, and the exit code is 1 if the page is not what this gives.
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
Rows = list[dict[str, Any]]
_COLUMNS = ("kernel", "compiler", "records", "places", "events", "registers", "spilled", "same", "beside its PTX",
            "longer by", "cycles a record")  # fmt: skip


def take(folder: Path, stored: Path) -> list[str]:
    """Put what the archives hold in its place; the names of what was written."""
    written = []
    for part, inside, to in (("cost", COST, COST), ("kernels", "results.json", KERNELS)):
        archive = folder / f"{part}.tar.gz"
        if archive.is_file():
            with tarfile.open(archive) as packed:
                members = {Path(each.name).name: each for each in packed.getmembers() if each.isfile()}
                for name, each in members.items():
                    target = stored / to if name == inside else stored / "ptx" / name.replace("-sm_90a", "")
                    if name == inside or (name.endswith(".parquet") and target.is_file()):
                        content = packed.extractfile(each)
                        assert content is not None
                        target.write_bytes(content.read())
                        written.append(str(target.relative_to(stored)))
    return sorted(written)


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
    hangs = row["file"].startswith("hang_")
    name = row["file"].removesuffix("-sm_90a").removeprefix("hang_")
    same = {True: "yes", False: "no"}.get(row.get("identical"), "–")  # type: ignore[arg-type]
    longer = each = "–"
    if "plain_ns" in row:
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
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 if the page is stale")
    options = parser.parse_args(arguments)
    if options.folder is not None:
        print("\n".join(take(options.folder, STORED)))
    page = PAGE.read_text(encoding="utf-8")
    made = filled(page, STORED)
    if options.check:
        return int(made != page)
    PAGE.write_text(made, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
