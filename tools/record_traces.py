"""Record the repository's traces on the GPU of this machine: ``python tools/record_traces.py --into traces``.

Writes one file for each configuration, named after it, into the folder of the device. Existing files are left alone
unless ``--force`` is given. ``--only WORD`` keeps the configurations whose label contains WORD. ``--kernel NAME`` takes
the configurations of another kernel of the registry than producer_consumer.
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # works from a checkout that is not installed

from hwkernels.capture import capture
from hwkernels.capture.twin_subject import recorded_request
from hwkernels.twins import find_twin, kernel_names
from pipesim.errors import PipesimError
from pipesim.trace.files import write_trace
from pipesim.trace.library import trace_name


def main() -> int:
    """Record the plan; 1 if any capture failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--into", type=Path, required=True, help="folder; the device's folder is made in it")
    parser.add_argument("--force", action="store_true", help="overwrite existing files")
    parser.add_argument("--only", default="", help="keep the configurations whose repr contains this")
    parser.add_argument("--kernel", choices=kernel_names(), default="producer_consumer", help="the kernel to record")
    options = parser.parse_args()
    failed = 0
    for recorded in find_twin(options.kernel).recorded:
        request = recorded_request(options.kernel, recorded)
        label = repr(request)
        if options.only not in label:
            continue
        try:
            trace = capture(request)
            path = options.into / trace_name(trace.meta)
            if path.exists() and not options.force:
                print(f"kept     {path}")
                continue
            write_trace(trace, path, force=options.force)
        except PipesimError as error:
            failed += 1
            print(f"FAILED   {label}\n{error}")
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
