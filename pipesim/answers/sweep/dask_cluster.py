"""A sweep on a Dask cluster that is there already: each configuration is a task of its own.

Built-in protocols travel by name, the programs of a file as data, so that no file of the user's is needed there. Every
worker must have this version of pipesim.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pipesim.answers.sweep.configuration import Answer, Question, SweepPart, carry_out, failed
from pipesim.answers.sweep.sweep import Over
from pipesim.answers.sweep.version import version
from pipesim.errors import MissingExtraError, UsageError

_CONNECT_S = 10  #: until a scheduler that does not answer is reported


@dataclass(frozen=True)
class DaskCluster:
    """The cluster of the scheduler at ``address``, such as ``tcp://10.0.0.1:8786``."""

    address: str

    def compute(self, parts: Sequence[SweepPart], asked: Question, over: Over) -> None:
        """Compute these on its workers. UsageError if it cannot be reached, has no worker, or another pipesim.

        What is under way when this ends by an exception is cancelled.
        """
        distributed = _distributed()
        with self._client(distributed) as client:
            _require_workers(client)
            futures = {client.submit(carry_out, part, asked, pure=False): part for part in parts}
            try:
                for future in distributed.as_completed(futures, loop=client.loop):
                    part, error = futures[future], future.exception()
                    over(part.params, future.result() if error is None else Answer(failed(part.params, error)))
            finally:
                client.cancel(list(futures))

    def _client(self, distributed: Any) -> Any:
        try:
            return distributed.Client(self.address, timeout=_CONNECT_S, set_as_default=False)
        except (OSError, ValueError, TimeoutError) as error:
            raise UsageError(
                f"there is no Dask scheduler at {self.address}",
                cause=str(error).partition("\n")[0],
                correction="give the address that `dask scheduler` prints, such as tcp://10.0.0.1:8786",
            ) from error


def _distributed() -> Any:
    try:
        import distributed
    except ImportError as error:
        raise MissingExtraError(
            "a sweep on a Dask cluster needs the package distributed", correction="pip install 'pipesim[cluster]'"
        ) from error
    return distributed


def _require_workers(client: Any) -> None:
    """UsageError unless there are workers, each with this pipesim."""
    try:
        versions = client.run(version, on_error="return")
    except Exception as error:
        raise UsageError("the workers of the Dask cluster cannot run pipesim", cause=str(error)) from error
    if not versions:
        raise UsageError("the Dask cluster has no worker", correction="start one with `dask worker ADDRESS`")
    for worker, other in sorted(versions.items()):
        if other != version():
            lacks = f"it has version {other}" if isinstance(other, str) else str(other)
            raise UsageError(
                f"worker {worker} of the Dask cluster has another pipesim than this one, {version()}",
                cause=lacks,
                correction=f"install pipesim {version()} where the workers run",
            )
