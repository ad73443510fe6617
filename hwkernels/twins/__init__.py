"""The registry: every CUDA kernel that pipesim has, by the name of its protocol.

``producer_consumer`` is the oldest and has a path of its own (:mod:`hwkernels.capture.request`): its records may lie in
shared memory, and it can be made wrong on purpose. All others are described by a
:class:`~hwkernels.capture.twin.Kernel`.
"""

from __future__ import annotations

from hwkernels.capture.request import PROTOCOL as PRODUCER_CONSUMER
from hwkernels.capture.twin import Kernel
from hwkernels.twins.hopper.attention_sm90 import ATTENTION_SM90
from hwkernels.twins.hopper.cluster_multicast import CLUSTER_MULTICAST
from hwkernels.twins.hopper.epilogue_residual import EPILOGUE_RESIDUAL
from hwkernels.twins.hopper.gemm_sm90 import GEMM_SM90
from hwkernels.twins.hopper.persistent_scheduler import PERSISTENT_SCHEDULER
from pipesim.errors import UsageError

#: One line a kernel; a kernel's module is named after it.
_KERNELS = (
    ATTENTION_SM90,
    CLUSTER_MULTICAST,
    EPILOGUE_RESIDUAL,
    GEMM_SM90,
    PERSISTENT_SCHEDULER,
)
REGISTRY: dict[str, Kernel] = {kernel.name: kernel for kernel in _KERNELS}


def kernel_names() -> tuple[str, ...]:
    """The protocols that have a CUDA kernel."""
    return (PRODUCER_CONSUMER, *REGISTRY)


def registered(name: str) -> Kernel:
    """The description of this kernel. UsageError if there is none."""
    if name not in REGISTRY:
        raise UsageError(f"there is no CUDA kernel of {name}", correction=f"there are kernels of {', '.join(REGISTRY)}")
    return REGISTRY[name]
