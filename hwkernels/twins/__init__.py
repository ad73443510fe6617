"""The registry: every CUDA kernel that pipesim can launch, by the name of its protocol."""

from hwkernels.twins.hopper.attention_sm90 import ATTENTION_SM90
from hwkernels.twins.hopper.attention_sm90_fused import ATTENTION_SM90_FUSED
from hwkernels.twins.hopper.cluster_multicast import CLUSTER_MULTICAST
from hwkernels.twins.hopper.epilogue_residual import EPILOGUE_RESIDUAL
from hwkernels.twins.hopper.gemm_sm90 import GEMM_SM90
from hwkernels.twins.hopper.persistent_scheduler import PERSISTENT_SCHEDULER
from hwkernels.twins.hopper.producer_consumer import PRODUCER_CONSUMER
from hwkernels.twins.twin import Twin
from pipesim.errors import UsageError

#: One line a kernel; a kernel's module is named after it.
_TWINS = (
    PRODUCER_CONSUMER,
    ATTENTION_SM90,
    ATTENTION_SM90_FUSED,
    CLUSTER_MULTICAST,
    EPILOGUE_RESIDUAL,
    GEMM_SM90,
    PERSISTENT_SCHEDULER,
)
REGISTRY: dict[str, Twin] = {twin.name: twin for twin in _TWINS}


def kernel_names() -> tuple[str, ...]:
    """The protocols that have a CUDA kernel."""
    return tuple(REGISTRY)


def find_twin(name: str) -> Twin:
    """The description of this kernel. UsageError if there is none."""
    if name not in REGISTRY:
        raise UsageError(f"there is no CUDA kernel of {name}", correction=f"there are kernels of {', '.join(REGISTRY)}")
    return REGISTRY[name]
