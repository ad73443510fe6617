"""A sweep on a Dask cluster that is there already: each configuration is a task of its own.

Built-in protocols travel by name, the programs of a file as data, so that no file of the user's is needed there. Every
worker must have this version of pipesim. A cluster that is lost ends the sweep with the answers that are there.
"""

import asyncio
import logging
from collections.abc import Iterator, Sequence
from concurrent.futures import BrokenExecutor, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from queue import Empty, Queue
from time import monotonic
from typing import Any

from pipesim.answers.sweep.configuration import Question, SweepAnswer, SweepPart, carry_out, failed_answer
from pipesim.answers.sweep.sweep import OnDone
from pipesim.errors import ClusterLostError, MissingExtraError, UsageError
from pipesim.version import __version__

_CONNECT_S = 10  #: until a scheduler that does not answer is reported
_LOOK_S = 2  #: from one look at the cluster to the next, while no answer comes
_NO_WORKER_S = 20  #: until a cluster without workers is reported: one that restarts them has some again by then
_NO_ANSWER_S = 20  #: until a scheduler that was there, and says nothing, is taken to be lost
_FETCH_S = 10  #: until the worker of an answer is taken to be lost
_PACKAGES = ("distributed", "tornado", "asyncio")
_CONTINUE = "start the cluster again, and add --results FILE: a sweep is continued from there"


@dataclass(frozen=True)
class DaskCluster:
    """The cluster of the scheduler at ``address``, such as ``tcp://10.0.0.1:8786``."""

    address: str

    def compute(self, parts: Sequence[SweepPart], asked: Question, on_done: OnDone) -> None:
        """Compute these on its workers. UsageError if it cannot be reached, has no worker, or another pipesim.

        ClusterLostError if the scheduler or all workers end before the last answer. What is under way when this ends by
        an exception is cancelled.
        """
        distributed = _import_distributed()
        with _without_log():
            self._require_scheduler(distributed)
            with self._client(distributed) as client:
                _require_workers(client)
                _Tasks(self.address, client, distributed.KilledWorker).carry_out(parts, asked, on_done)

    def _require_scheduler(self, distributed: Any) -> None:
        """UsageError unless a scheduler answers. A client would try for minutes, whatever it is that listens there."""
        try:
            with ThreadPoolExecutor(1) as thread:  # a notebook has a loop in this one
                asking = asyncio.wait_for(_identity(distributed, self.address), _CONNECT_S)
                said = thread.submit(asyncio.run, asking).result()
        except Exception as error:
            raise self._not_there(_in_short(error) or "what listens there does not answer as one") from error
        if said.get("type") != "Scheduler":
            raise self._not_there(f"what answers there is a {str(said.get('type')).lower()}")

    def _client(self, distributed: Any) -> Any:
        try:
            return distributed.Client(self.address, timeout=_CONNECT_S, set_as_default=False)
        except (OSError, ValueError, TimeoutError) as error:
            raise self._not_there(_in_short(error)) from error

    def _not_there(self, cause: str) -> UsageError:
        return UsageError(
            f"there is no Dask scheduler at {self.address or 'an empty address'}",
            cause=cause,
            correction="give the address that `dask scheduler` prints, such as tcp://10.0.0.1:8786",
        )


class _Tasks:
    """The configurations on a cluster, each a future."""

    def __init__(self, address: str, client: Any, killed: type[Exception]) -> None:
        self._address = address
        self._client = client
        self._killed = killed
        self._done: Queue[Any] = Queue()
        self._empty_since: float | None = None

    def carry_out(self, parts: Sequence[SweepPart], asked: Question, on_done: OnDone) -> None:
        """As ``DaskCluster.compute``."""
        waiting: dict[Any, SweepPart] = {}
        try:
            for part in parts:
                future = self._client.submit(carry_out, part, asked, pure=False)
                waiting[future] = part
                future.add_done_callback(self._done.put)
            while waiting:
                future, answer = self._next(waiting)
                if answer is None:
                    self._require_alive()
                else:
                    on_done(waiting.pop(future).params, answer)
        finally:
            with suppress(Exception):  # of a scheduler that is gone there is nothing to cancel
                self._client.cancel(list(waiting))

    def _next(self, waiting: dict[Any, SweepPart]) -> tuple[Any, SweepAnswer | None]:
        """A future with its answer; None if there is none yet, or its worker was lost before it was read."""
        try:
            future = self._done.get(timeout=_LOOK_S)
        except Empty:
            return None, None
        if future.status == "cancelled":
            raise self._lost("the connection to the Dask scheduler", "its process ended, or the network failed")
        try:
            error = future.exception(timeout=_FETCH_S)
            if error is None:
                return future, future.result(timeout=_FETCH_S)
        except TimeoutError:
            future.add_done_callback(self._done.put)  # another worker computes it again
            return None, None
        died = isinstance(error, self._killed)
        return future, SweepAnswer(failed_answer(waiting[future].params, BrokenExecutor() if died else error))

    def _require_alive(self) -> None:
        """ClusterLostError if the scheduler is gone, or there was no worker for some time."""
        if self._client.status != "running":
            raise self._lost("the connection to the Dask scheduler", "its process ended, or the network failed")
        try:
            said = self._client.sync(self._client.scheduler.identity, callback_timeout=_NO_ANSWER_S)
        except (OSError, TimeoutError) as error:
            raise self._lost("the connection to the Dask scheduler", "it does not answer") from error
        if said.get("workers"):
            self._empty_since = None
            return
        self._empty_since = self._empty_since or monotonic()
        if monotonic() - self._empty_since >= _NO_WORKER_S:
            raise self._lost("every worker of the Dask cluster", "their processes ended, such as for lack of memory")

    def _lost(self, what: str, cause: str) -> ClusterLostError:
        return ClusterLostError(f"{what} at {self._address} was lost", cause=cause, correction=_CONTINUE)


async def _identity(distributed: Any, address: str) -> dict[str, Any]:
    """What answers at an address says that it is."""
    security = distributed.Security().get_connection_args("client")
    comm = await distributed.comm.connect(address, timeout=_CONNECT_S, **security)
    try:
        await comm.write({"op": "identity", "reply": True})
        said = await comm.read()
        return said if isinstance(said, dict) else {}
    finally:
        comm.abort()


def _import_distributed() -> Any:
    try:
        import distributed
        import distributed.comm
    except ImportError as error:
        raise MissingExtraError(
            "a sweep on a Dask cluster needs the package distributed", correction="pip install 'pipesim[cluster]'"
        ) from error
    return distributed


def _in_short(error: BaseException) -> str:
    return str(error).partition("\n")[0]


@contextmanager
def _without_log() -> Iterator[None]:
    """What the packages of a cluster log about connections is not for the terminal: what matters is an error here."""
    loggers = [
        logger
        for name, logger in list(logging.root.manager.loggerDict.items())
        if name.partition(".")[0] in _PACKAGES and isinstance(logger, logging.Logger) and not logger.disabled
    ]
    for logger in loggers:
        logger.disabled = True
    try:
        yield
    finally:
        for logger in loggers:
            logger.disabled = False


def _version() -> str:
    return __version__  # a worker's own: dask sends the name of this function


def _require_workers(client: Any) -> None:
    """UsageError unless there are workers, each with this pipesim."""
    try:
        versions = client.run(_version, on_error="return")
    except Exception as error:
        raise UsageError("the workers of the Dask cluster cannot run pipesim", cause=_in_short(error)) from error
    if not versions:
        raise UsageError("the Dask cluster has no worker", correction="start one with `dask worker ADDRESS`")
    for worker, other in sorted(versions.items()):
        if other != __version__:
            lacks = f"it has version {other}" if isinstance(other, str) else str(other)
            raise UsageError(
                f"worker {worker} of the Dask cluster has another pipesim than this one, {__version__}",
                cause=lacks,
                correction=f"install pipesim {__version__} where the workers run",
            )
