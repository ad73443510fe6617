"""Whether a launch is one of a kernel: whole clusters, and the threads and clusters that its directives require."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from pipesim.errors import LaunchFileError
from pipesim.ptx.launch.values import Launch, Shape
from pipesim.ptx.text.module import Function


def fitted(launch: Launch, entry: Function) -> Launch:
    """The launch with the cluster that the kernel requires (``.reqnctapercluster``). LaunchFileError if it cannot be
    launched so.
    """
    _require_threads(launch, entry)
    required = _required(entry, "reqnctapercluster")
    if required is not None and required != launch.cluster:
        if launch.cluster != (1, 1, 1):
            raise LaunchFileError(
                f"the launch file has clusters of {launch.cluster}, and {entry.name} requires {required}",
                place="cluster",
                correction=f"write {list(required)}",
            )
        launch = replace(launch, cluster=required)
    if any(g % c for g, c in zip(launch.grid, launch.cluster, strict=True)):
        raise LaunchFileError(
            f"a grid of {launch.grid} does not consist of whole clusters of {launch.cluster}",
            place="grid",
            cause="" if required is None else f"{entry.name} requires them",
            correction="use multiples",
        )
    if not 0 <= launch.cta < prod(launch.grid):
        raise LaunchFileError(
            f"there is no CTA {launch.cta:,} in a grid of {prod(launch.grid):,}",
            place="cta",
            correction=f"use 0 to {prod(launch.grid) - 1:,}",
        )
    return launch


def _require_threads(launch: Launch, entry: Function) -> None:
    """LaunchFileError if a CTA has not the threads that the kernel was compiled for."""
    required = _required(entry, "reqntid")
    if required is not None and launch.block != required:
        raise LaunchFileError(
            f"the launch file has blocks of {launch.block}, and {entry.name} requires {required} (.reqntid)",
            place="block",
            correction=f"write {list(required)}",
        )
    most = prod(entry.directives.get("maxntid", ()))
    threads = prod(launch.block)
    if "maxntid" in entry.directives and threads > most:
        raise LaunchFileError(
            f"the launch file has {threads:,} threads a block, and {entry.name} has at most {most:,} (.maxntid)",
            place="block",
            cause="a launch with more of them fails",
            correction=f"use {most:,} or fewer",
        )


def _required(entry: Function, directive: str) -> Shape | None:
    """The sizes that a directive requires, x first; None without it."""
    if directive not in entry.directives:
        return None
    x, y, z = (*entry.directives[directive], 1, 1, 1)[:3]
    return x, y, z
