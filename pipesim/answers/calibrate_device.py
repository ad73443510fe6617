"""A latency profile of the GPU of this machine: micro-kernels, then captures of rings to which the rest is fitted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from pipesim.answers.calibrate import Calibration, calibrate
from pipesim.answers.calibrate_inputs import Inputs, RecordedFile, Tell
from pipesim.answers.evidence import captured
from pipesim.timed.profile import Profile
from pipesim.trace.files import write_trace

#: Rings of copies: stages, bytes of a tile, consumer warps, cycles of work, CTAs (0: one on every SM). Small and large
#: tiles part latency from rate; one stage shows the whole way round, several the copy engine; work hides the loads.
RINGS: tuple[tuple[int, int, int, int, int], ...] = (
    (1, 1024, 1, 0, 1), (1, 5120, 1, 0, 1), (1, 16384, 1, 0, 1), (2, 3072, 1, 150, 1), (2, 12288, 2, 300, 1),
    (4, 2048, 1, 0, 1), (4, 32768, 1, 0, 1), (4, 8192, 1, 1000, 1), (4, 16384, 4, 0, 1), (6, 4096, 2, 200, 1),
    (1, 4096, 1, 0, 0), (4, 16384, 2, 0, 0),
)  # fmt: skip
_TILES = 48


def calibrate_device(base: Profile, name: str, tell: Tell = lambda _: None) -> Calibration:
    """Measure and fit a profile called ``name``. HardwareError without a GPU that runs the kernels."""
    from hwkernels.device.launch import require_gpu
    from hwkernels.microbench.run import measure_device

    info = require_gpu()
    tell("running micro-kernels")
    known = {value: cycles for value, cycles in measure_device(info).items() if value in base.values}
    base = replace(base, device=info.name, sms=info.sms)
    with TemporaryDirectory(prefix="pipesim-") as folder:
        files = tuple(_recorded(Path(folder), info.sms, tell))
        found, _ = calibrate(Inputs(files, 0), base, name, tell=tell, known=known)
    return found


def _recorded(folder: Path, sms: int, tell: Tell) -> Iterator[RecordedFile]:
    """The rings, captured into the folder."""
    from hwkernels.capture import CaptureRequest, TwinSubject

    for number, (stages, nbytes, warps, work, ctas) in enumerate(RINGS, start=1):
        tell(f"capturing ring {number} of {len(RINGS)}")
        params = {
            "stages": stages, "tiles": _TILES, "tile_bytes": nbytes, "consumer_warps": warps, "work": work,
            "arrive_lanes": 1,
        }  # fmt: skip
        trace = captured(CaptureRequest(TwinSubject("producer_consumer", ctas or sms), params, record_ctas=1))
        path = folder / f"ring-{number}.parquet"
        write_trace(trace, path)
        label = f"captured ring {stages} x {nbytes}, {warps} warps, work {work}, {ctas or sms} CTAs"
        yield RecordedFile(label, path, trace.meta)
