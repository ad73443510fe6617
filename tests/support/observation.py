"""An observer that writes prepared records, in place of CUPTI."""

from pathlib import Path

from pipesim.launches.observe.limits import Limits
from pipesim.ptx.launch.file import read_launch
from tests.support.paths import ROOT
from tests.support.spools import record_of, write_spool

PTX = ROOT / "tests" / "ptx" / "kernels" / "scale_ws_s3-sm_90a.ptx"
NO_CODE = {"image": "c", "code": "", "origin": "", "why_not": "machine code", "parameters_known": False}
LIBRARY = {"kind": "launch", "kernel": "ampere_sgemm", "grid": [1], "block": [32], "cluster": [1], **NO_CODE}


class Observation:
    """Writes one launch when it begins, and another one when it ends; of each it says that it happened."""

    def __init__(self, spool: Path, limits: Limits) -> None:
        self.spool, self.limits, self.stopped = spool, limits, 0
        given = read_launch(PTX.with_suffix(".json").read_text(encoding="utf-8"), "x")
        write_spool(spool, [record_of(given), LIBRARY], i=PTX.read_text(encoding="utf-8"))

    def stop(self) -> None:
        self.stopped += 1
