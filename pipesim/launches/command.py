"""What a command is given whose launches are observed: its environment, and a spool for its records."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from pipesim.bounds import MAX_RECORDS, MAX_SPOOL_BYTES
from pipesim.errors import ParameterError
from pipesim.launches import observe
from pipesim.launches.observe.limits import SPOOL, Limits

_SITE = Path(observe.__file__).with_name("site")  #: its ``sitecustomize`` begins to observe a Python process


def limits_of(patterns: Sequence[str], launches: int, nbytes: int, *, once: bool) -> Limits:
    """What a person asks to be recorded. ParameterError for a number that is not from 1 to what is read."""
    for name, value, most in (("launches", launches, MAX_RECORDS), ("bytes", nbytes, MAX_SPOOL_BYTES)):
        if not 1 <= value <= most:
            raise ParameterError(f"a limit of {value:,} {name}", correction=f"use 1 to {most:,}")
    return Limits(tuple(patterns), once, launches, nbytes)


@contextmanager
def spool_folder() -> Iterator[Path]:
    """A folder for records that no other user can read or write; it is removed with all that is in it."""
    with tempfile.TemporaryDirectory(prefix="pipesim-launches-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def observed_environment(
    spool: Path,
    limits: Limits,
    environment: Mapping[str, str] = os.environ,
    *,
    inject: bool = False,
    more: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """The environment of a command whose Python processes write records to ``spool``, and so do their children.

    ``inject``: so do processes that are not Python. ``more``: other variables for them. Raises as
    :func:`pipesim.launches.inject.injection_environment`.
    """
    path = environment.get("PYTHONPATH")
    paths = [str(_SITE), *([path] if path else [])]
    others = {}
    if inject:
        from pipesim.launches.inject import injection_environment

        others = injection_environment(spool, limits, environment)
    mine = {**limits.to_environment(), **(more or {}), SPOOL: str(spool), "PYTHONPATH": os.pathsep.join(paths)}
    return {**environment, **others, **mine}
