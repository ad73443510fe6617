# Launches Modular's structured GEMM for Blackwell: C = A * B^T in bf16. Parameters by -D NAME=VALUE.
from layout import Coord, Idx, TileTensor, row_major
from linalg.matmul.gpu.sm100_structured.default.matmul import (
    blackwell_matmul_tma_umma_warp_specialized,
)
from linalg.matmul.gpu.sm100_structured.structured_kernels.config import (
    MatmulConfig,
)
from max.gpu.host import DeviceContext
from std.sys.defines import get_defined_int
from std.utils.index import Index


def main() raises:
    comptime M = get_defined_int["M", 1024]()
    comptime N = get_defined_int["N", 1024]()
    comptime K = get_defined_int["K", 1024]()
    comptime GROUP = get_defined_int["CTA_GROUP", 1]()
    comptime kind = DType.bfloat16
    comptime config = MatmulConfig[kind, kind, kind, True](
        cluster_shape=Index(
            get_defined_int["CLUSTER_M", GROUP](),
            get_defined_int["CLUSTER_N", 1](),
            1,
        ),
        mma_shape=Index(128 * GROUP, get_defined_int["MMA_N", 128](), 16),
        cta_group=GROUP,
        k_group_size=get_defined_int["K_GROUP", 1](),
        block_swizzle_size=get_defined_int["SWIZZLE", 0](),
    )
    with DeviceContext() as ctx:
        var a_memory = ctx.enqueue_create_buffer[kind](M * K)
        var b_memory = ctx.enqueue_create_buffer[kind](N * K)
        var c_memory = ctx.enqueue_create_buffer[kind](M * N)
        blackwell_matmul_tma_umma_warp_specialized[
            transpose_b=True, config=config
        ](
            TileTensor(c_memory, row_major(Coord(Int(M), Idx[N]))),
            TileTensor(a_memory, row_major(Coord(Int(M), Idx[K]))),
            TileTensor(b_memory, row_major(Coord(Idx[N], Idx[K]))),
            ctx,
        )
        ctx.synchronize()
        _ = a_memory^
        _ = b_memory^
        _ = c_memory^
