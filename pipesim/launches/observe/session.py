"""Observing from now on, until it is stopped or the process ends."""

import atexit
import os
from contextlib import suppress
from pathlib import Path

from pipesim.errors import MissingExtraError
from pipesim.launches.observe.alike import AlikeLaunches
from pipesim.launches.observe.calls import ALL, ORDER
from pipesim.launches.observe.compilers import CompiledPtx, keep_ptx
from pipesim.launches.observe.cupti import CuptiError, Subscription, cupti_libraries
from pipesim.launches.observe.driver import CudaDriver
from pipesim.launches.observe.limits import LIBRARY, OBSERVED, Limits
from pipesim.launches.observe.loaded_images import LoadedImages
from pipesim.launches.observe.observer import LaunchObserver
from pipesim.launches.observe.spool import Spool


class LaunchObservation:
    """One observation of this process; it ends with ``stop``, which may be called twice.

    ``spool`` gets its records, ``compiled`` knows the PTX of what compilers in this process made.
    """

    def __init__(self, spool: Spool, observer: LaunchObserver, compiled: CompiledPtx) -> None:
        self.spool, self.observer, self.compiled = spool, observer, compiled
        self._subscription: Subscription | None = None
        self._process = os.getpid()
        self.switches: tuple[str, ...] = ()  #: variables of the environment that are set while it lasts

    def subscribe(self, library: str) -> None:
        """Ask CUPTI for the calls; ``library`` counts launches, "" for none.

        MissingExtraError without CUPTI, CuptiError where it serves another one.
        """
        with suppress(OSError):  # each launch is reported then
            if library:
                self.observer.be_asked_by(AlikeLaunches(library, self.observer.on_call))
        self._subscription = _subscribe(self.observer)

    def follow_graphs(self) -> bool:
        """Ask the exchange about each kernel of a graph that is launched; whether that can be done."""
        alike = self.observer.alike
        if alike is not None and self._subscription is not None:
            self._subscription.report(alike.graphs(recorded=True))
        return alike is not None

    def stop(self) -> None:
        """End the calls, write how often each kernel was launched, and close the records."""
        atexit.unregister(self.stop)
        if os.getpid() != self._process or self._subscription is None:  # a child that was forked has no CUPTI
            return
        if self.observer.alike is not None:
            self.observer.alike.graphs(recorded=False)
        self._subscription.close()
        self._subscription = None
        self.compiled.unwatch()
        for name in self.switches:
            os.environ.pop(name, None)
        self.observer.finish()
        self.spool.close()


def start(spool: Path, limits: Limits, library: str = "") -> LaunchObservation:
    """Observe this process from now on; its records go to a new file in ``spool``.

    ``library``: that of programs which are not Python, which counts launches like one before; by default the one that
    the environment names, if any. MissingExtraError without CUPTI or without a driver; CuptiError if another profiler
    observes it already.
    """
    written = Spool(spool, limits.nbytes, limits.copies)
    compiled = CompiledPtx()
    try:
        driver = CudaDriver()
    except OSError as error:
        raise MissingExtraError(
            "there is no CUDA driver", cause=str(error), correction="capture on the machine with the GPU"
        ) from error
    os.environ[OBSERVED] = str(os.getpid())  # before cuInit, which loads the injected library
    images = LoadedImages(compiled, lambda: driver.device()[1])
    made = LaunchObservation(written, LaunchObserver(driver, written, limits, images), compiled)
    made.subscribe(library or os.environ.get(LIBRARY, ""))
    made.switches = keep_ptx(spool / "cute")
    compiled.watch()
    atexit.register(made.stop)
    return made


def _subscribe(observer: LaunchObserver) -> Subscription:
    """By the first CUPTI that can be loaded and that the driver is not too old for."""
    problem, refusal = "", None
    for library in cupti_libraries():
        try:
            called = observer.alike.called if observer.alike is not None else None
            return Subscription(library, ALL | ORDER if observer.ordered else ALL, observer.on_call, called)
        except OSError as error:
            problem = str(error)
        except CuptiError as error:
            if error.taken:
                raise
            refusal = refusal or error
    if refusal is not None:
        raise refusal
    raise MissingExtraError("CUPTI is not installed", cause=problem, correction="pip install nvidia-cuda-cupti")
