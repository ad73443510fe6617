"""Record again what is stored, on the GPU of this machine: ``python tools/record_traces.py "h200/gemm*" --into DIR``.

Each configuration of the stored traces whose names have the pattern goes to a file that is named after it, in the
folder of the device. Existing files are left alone unless ``--force`` is given.
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # works from a checkout that is not installed

from hwkernels.capture import capture
from hwkernels.capture.twin_subject import recorded_request
from pipesim.errors import PipesimError
from pipesim.trace.files import read_meta, write_trace
from pipesim.trace.library import trace_folder, trace_name


def main() -> int:
    """Record them; 1 if any capture failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pattern", help="of stored traces, below the folder of all")
    parser.add_argument("--into", type=Path, required=True, help="folder; the device's folder is made in it")
    parser.add_argument("--force", action="store_true", help="overwrite existing files")
    options = parser.parse_args()
    failed = 0
    for stored in sorted(trace_folder().glob(f"{options.pattern}.parquet")):
        try:
            trace = capture(recorded_request(read_meta(stored)))
            path = options.into / trace_name(trace.meta)
            if path.exists() and not options.force:
                print(f"kept     {path}")
                continue
            write_trace(trace, path, force=options.force)
        except PipesimError as error:
            failed += 1
            print(f"FAILED   {stored}\n{error}")
            continue
        lost = sum(sum(c.dropped) for c in trace.meta.ctas)
        print(
            f"recorded {path}: {len(trace.events):,} events, {lost} lost, {trace.meta.status}, "
            f"{trace.meta.wrong_tiles} wrong tiles, {trace.meta.extra}",
            flush=True,
        )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
