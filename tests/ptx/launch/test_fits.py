"""A launch that cannot be one of its kernel is an error, not a verdict."""

from dataclasses import replace

import pytest

from pipesim.errors import LaunchFileError
from pipesim.ptx.launch.file import fit_cluster
from pipesim.ptx.launch.values import Launch
from tests.support.ptx_text import kernel

PLAIN = kernel("ret;")
ONE = (1, 1, 1)


@pytest.mark.parametrize(
    ("grid", "block", "cluster", "directives", "fact"),
    [
        ((3, 1, 1), (32, 1, 1), (2, 1, 1), {}, "does not consist of whole clusters of (2, 1, 1)"),
        ((3, 1, 1), (32, 1, 1), ONE, {"reqnctapercluster": (2,)}, "does not consist of whole clusters of (2, 1, 1)"),
        ((4, 1, 1), (32, 1, 1), (4, 1, 1), {"reqnctapercluster": (2,)}, "and kernel requires (2, 1, 1)"),
        (ONE, (96, 2, 1), ONE, {"maxntid": (96,)}, "has 192 threads a block, and kernel has at most 96 (.maxntid)"),
        (ONE, (64, 1, 1), ONE, {"reqntid": (32, 2)}, "requires (32, 2, 1) (.reqntid)"),
    ],
)
def test_a_launch_that_fails(grid, block, cluster, directives, fact):
    launch = Launch("kernel", grid, block, cluster)
    with pytest.raises(LaunchFileError) as raised:
        fit_cluster(launch, replace(PLAIN, name="kernel", directives=directives))
    assert fact in raised.value.fact
    assert raised.value.correction


def test_a_cluster_that_the_kernel_requires_need_not_be_in_the_file():
    launch = Launch("kernel", (4, 1, 1), (64, 1, 1), ONE)
    directives = {"reqnctapercluster": (2,), "maxntid": (16, 4)}
    assert fit_cluster(launch, replace(PLAIN, directives=directives)).cluster == (2, 1, 1)
    assert fit_cluster(launch, PLAIN) == launch
