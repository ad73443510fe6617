"""Inside the observed process: what it launches, as records in a spool folder (``docs/launches.md``).

Nothing here imports CUDA's Python packages, numpy or rich: the process that is observed may have none of them, and its
own imports must not change. CUPTI calls a LaunchObserver (``observer.py``) at the driver's functions; it only reads
their arguments, but for the function of a launch that is recorded. A record is written before the launch that it is of.
"""

from pipesim.launches.observe.limits import Limits
from pipesim.launches.observe.session import LaunchObservation, start

__all__ = ["LaunchObservation", "Limits", "start"]
