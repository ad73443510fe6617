# Launches Modular's warp-specialized GEMM for Hopper: C = A * B^T in bf16. Parameters by -D NAME=VALUE.
from layout import Coord, Idx, TileTensor, row_major
from linalg.matmul.gpu.sm90.matmul import (
    warp_specialize_gemm_with_multicasting,
)
from linalg.matmul.gpu.tile_scheduler import MatmulSchedule
from linalg.utils_gpu import MatmulConfig
from max.gpu.host import DeviceContext
from std.sys.defines import get_defined_int
from std.utils.index import Index


def main() raises:
    comptime M = get_defined_int["M", 1024]()
    comptime N = get_defined_int["N", 1024]()
    comptime K = get_defined_int["K", 1024]()
    comptime CONSUMERS = get_defined_int["CONSUMERS", 2]()
    comptime BN = get_defined_int["BN", 128]()
    comptime kind = DType.bfloat16
    comptime config = MatmulConfig[kind, kind, kind, True](
        block_tile_shape=Index(64 * CONSUMERS, BN, 64),
        mma_shape=Index(64, BN, 16),
        cluster_shape=Index(
            get_defined_int["CLUSTER_N", 1](),
            get_defined_int["CLUSTER_M", 1](),
            1,
        ),
        num_pipeline_stages=get_defined_int["STAGES", 4](),
        num_consumer=CONSUMERS,
        partitioned_multicast=get_defined_int["PARTITIONED", 0]() == 1,
        k_group_size=get_defined_int["K_GROUP", 1](),
    )
    with DeviceContext() as ctx:
        var a_memory = ctx.enqueue_create_buffer[kind](M * K)
        var b_memory = ctx.enqueue_create_buffer[kind](N * K)
        var c_memory = ctx.enqueue_create_buffer[kind](M * N)
        var c = TileTensor(c_memory, row_major(Coord(Int(M), Idx[N])))
        var a = TileTensor(a_memory, row_major(Coord(Int(M), Idx[K])))
        var b = TileTensor(b_memory, row_major(Coord(Idx[N], Idx[K])))
        comptime if get_defined_int["PERSISTENT", 0]() == 1:
            warp_specialize_gemm_with_multicasting[
                transpose_b=True,
                config=config,
                schedule=MatmulSchedule.TILE2D,
                grid_shape=Index(10, 12),
            ](c, a, b, ctx)
        else:
            warp_specialize_gemm_with_multicasting[
                transpose_b=True, config=config
            ](c, a, b, ctx)
        ctx.synchronize()
        _ = a_memory^
        _ = b_memory^
        _ = c_memory^
