"""A process in which launches are recorded, from now on until it ends or the recording does."""

import atexit
from pathlib import Path

from pipesim.launches import observe
from pipesim.launches.observe.limits import Limits
from pipesim.launches.observe.session import LaunchObservation
from pipesim.launches.record.launches import RecordedLaunches
from pipesim.launches.record.memory import CudaMemory
from pipesim.launches.record.options import RecordOptions
from pipesim.launches.record.requests import Prepare


class ProcessRecording:
    """One recording of this process; it ends with ``stop``, which may be called twice."""

    def __init__(self, observation: LaunchObservation, launches: RecordedLaunches) -> None:
        self._observation, self._launches = observation, launches

    def stop(self) -> None:
        """Have launches take place as they are asked for, and close the records."""
        atexit.unregister(self.stop)
        self._launches.active = False
        self._observation.stop()


def start_recording(
    spool: Path, limits: Limits, options: RecordOptions, prepare: Prepare, library: str = ""
) -> ProcessRecording:
    """Record this process from now on; its records go to a new file in ``spool``. Raises as ``observe.start``."""
    observation = observe.start(spool, limits, library)
    launches = RecordedLaunches(CudaMemory(), observation.spool, options, prepare)
    observation.observer.exchange = launches
    launches.follows_graphs = observation.follow_graphs()
    made = ProcessRecording(observation, launches)
    atexit.register(made.stop)  # it is called before the observation's own end, which closes the records
    return made
