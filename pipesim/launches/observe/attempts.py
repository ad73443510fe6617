"""A launch as the driver is asked for it: read from the arguments of the call, which CUPTI shows."""

from typing import Any, NamedTuple

from pipesim.launches.observe import calls
from pipesim.launches.observe.driver import Shape


class Attempt(NamedTuple):
    """A launch as the driver was asked for it; ``parameters`` and ``extra`` are addresses."""

    function: int
    grid: Shape
    block: Shape
    cluster: Shape | None
    shared: int
    stream: int
    parameters: int
    extra: int
    via: str
    programmatic: bool = False
    in_graph: str = ""  #: which launch of which graph it is


def attempt_of(number: int, arguments: int) -> Attempt:
    """The launch that a call of CUPTI's number asks for, whose arguments are at this address."""
    if number in calls.LAUNCH_EX:
        given = calls.LaunchKernelEx.from_address(arguments)
        config = calls.LaunchConfig.from_address(given.config)
        grid, block = shape_of(config)
        stream, extra = config.stream or _default_stream(number), given.extra or 0
        return Attempt(
            given.function or 0, grid, block, _cluster(config), config.shared, stream, given.parameters or 0, extra,
            "launch", any(each.id == calls.PROGRAMMATIC and each.value[0] for each in _attributes(config)),
        )  # fmt: skip
    plain = calls.LaunchKernel.from_address(arguments)
    grid, block = shape_of(plain)
    extra = 0 if number in calls.COOPERATIVE else plain.extra or 0
    stream = plain.stream or _default_stream(number)
    return Attempt(plain.function or 0, grid, block, None, plain.shared, stream, plain.parameters or 0, extra, "launch")


def exchange_function(number: int, arguments: int, function: int) -> None:
    """Have the driver launch another function: it takes the arguments of a call from where CUPTI shows them.

    That is not documented. It was so in each way to launch of driver 580 (docs/recording.md); where it is not, the
    buffer of the launch stays as it was, which is said.
    """
    given: Any = (calls.LaunchKernelEx if number in calls.LAUNCH_EX else calls.LaunchKernel).from_address(arguments)
    given.function = function


def _default_stream(number: int) -> int:
    """The stream 0 of a call: that of the thread where the call is of the thread's kind."""
    return calls.PER_THREAD_STREAM if number in calls.PER_THREAD else 0


def shape_of(given: Any) -> tuple[Shape, Shape]:
    """The grid and the block of a structure that has them."""
    return (given.grid_x, given.grid_y, given.grid_z), (given.block_x, given.block_y, given.block_z)


def _attributes(config: Any) -> Any:
    return (calls.Attribute * config.count).from_address(config.attributes) if config.attributes else ()


def _cluster(config: Any) -> Shape | None:
    """The cluster among a launch's attributes."""
    for each in _attributes(config):
        if each.id == calls.CLUSTER:
            return each.value[0], max(each.value[1], 1), max(each.value[2], 1)
    return None
