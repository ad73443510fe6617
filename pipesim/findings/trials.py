"""Rules on trial: how often a GPU could have broken what PTX does not promise, and did not (``hwkernels.trials``).

A test compares these numbers with ``traces/DEVICE/trials.json``, which ``python -m hwkernels.trials.run`` writes. Two
of its trials are about ptxas more than about a GPU, and are not said: ``wgmma_fence`` (it adds the fence), ``generic``;
neither is ``copy_commits``, since most kernels that assume an order of commits rely on those of ``tcgen05``.
"""

from dataclasses import dataclass
from types import MappingProxyType

_DIGITS = 2  #: of a number of tries that is said


@dataclass(frozen=True)
class RuleTried:
    """A rule on one device: ``tries``, in none of which it was seen broken."""

    device: str
    driver: str
    tries: int


#: By the names of trials.
TRIED = MappingProxyType(
    {
        "no_complete": (RuleTried("NVIDIA H200", "580.159.04", 24_330_240_000),),
        "proxies": (RuleTried("NVIDIA H200", "580.159.04", 5_913_600_000),),
        "init": (RuleTried("NVIDIA H200", "580.159.04", 14_699_520_000),),
        "exit": (RuleTried("NVIDIA H200", "580.159.04", 19_005_440),),
        "lanes": (RuleTried("NVIDIA H200", "580.159.04", 5_026_560_000),),
        "exited_threads": (RuleTried("NVIDIA H200", "580.159.04", 34_932_480_000),),
        "tx_edge": (RuleTried("NVIDIA H200", "580.159.04", 8_110_080_000),),
    }
)

#: The trials of kinds of findings and of assumptions, by their names.
_TRIAL_OF = MappingProxyType(
    {
        "no_complete": "no_complete",
        "read_not_fenced": "proxies",
        "proxies": "proxies",
        "init": "init",
        "under_way_at_exit": "exit",
        "exit": "exit",
        "lanes_apart": "lanes",
        "lanes": "lanes",
        "exited-threads": "exited_threads",
        "tensor_fence": "tensor_fences",
        "tensor-fences": "tensor_fences",
        "tensor-loads": "tensor_loads",
        "tensor-lanes": "tensor_lanes",
        "tx_edge": "tx_edge",
        "commits": "commits",
    }
)


def never_seen(name: str) -> str:
    """``never seen in 4.0 × 10⁸ tries on NVIDIA H200``, of a finding or an assumption; "" if it was not tried."""
    found = TRIED.get(_TRIAL_OF.get(name, ""), ())
    tries = " and ".join(f"{_power(each.tries)} tries on {each.device}" for each in found)
    return f"never seen in {tries}" if tries else ""


def _power(number: int) -> str:
    digits, exponent = f"{number:.{_DIGITS - 1}e}".split("e")
    return f"{digits} × 10{''.join('⁰¹²³⁴⁵⁶⁷⁸⁹'[int(each)] for each in str(int(exponent)))}"
