"""``python -m hwkernels.capture FOLDER``: carry out the request in a folder, and leave its trace there.

Whatever a kernel does to the CUDA context, the process that asked continues; a kernel that still runs when this process
ends is ended by the driver.
"""

import os
import sys

from hwkernels.capture.pipeline import capture_here
from hwkernels.capture.subprocess_capture import answer, load
from hwkernels.device.launch import require_gpu
from pipesim.trace.schema import Trace


def _carry_out(text: str) -> Trace:
    request, builds = load(text)
    return capture_here(request, require_gpu(), builds)


if __name__ == "__main__":
    code = answer(sys.argv[1], _carry_out)
    sys.stderr.flush()
    os._exit(code)  # an ordinary end would wait for a kernel that still runs
