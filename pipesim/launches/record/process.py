"""Recording this process, from now on until it is stopped or the process ends."""

from __future__ import annotations

import atexit
from pathlib import Path

from pipesim.launches import observe
from pipesim.launches.observe.limits import Limits
from pipesim.launches.observe.session import LaunchObservation
from pipesim.launches.record.frameworks import Frameworks
from pipesim.launches.record.launches import RecordedLaunches
from pipesim.launches.record.memory import CudaMemory
from pipesim.launches.record.options import RecordOptions

__all__ = ["ProcessRecording", "RecordOptions", "start_recording"]


class ProcessRecording:
    """One recording of this process; it ends with ``stop``, which may be called twice."""

    def __init__(self, observation: LaunchObservation, launches: RecordedLaunches, frameworks: Frameworks) -> None:
        self._observation, self._launches, self._frameworks = observation, launches, frameworks

    def stop(self) -> None:
        """Give the frameworks their functions back, and close the records."""
        atexit.unregister(self.stop)
        self._launches.active = False
        self._frameworks.restore()
        self._observation.stop()


def start_recording(spool: Path, limits: Limits, options: RecordOptions) -> ProcessRecording:
    """Record this process from now on; its records go to a new file in ``spool``. Raises as ``observe.start``."""
    observation = observe.start(spool, limits)
    launches = RecordedLaunches(CudaMemory(), observation.observer, observation.spool, options, observation.compiled)
    frameworks = Frameworks(launches)
    frameworks.change()
    made = ProcessRecording(observation, launches, frameworks)
    atexit.register(made.stop)  # it is called before the observation's own end, which closes the records
    return made
