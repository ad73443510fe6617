# Launches Modular's blockwise FP8 GEMM for Blackwell. Parameters by -D NAME=VALUE.
from layout import Coord, Idx, TileTensor, row_major
from linalg.matmul.gpu.sm100_structured.blockwise_fp8.blockwise_fp8_matmul import (
    blockwise_fp8_matmul,
)
from linalg.matmul.gpu.sm100_structured.structured_kernels.config import (
    GEMMKind,
    MatmulConfig,
)
from max.gpu.host import DeviceContext
from std.sys.defines import get_defined_int
from std.utils.index import Index


def main() raises:
    comptime M = get_defined_int["M", 512]()
    comptime N = get_defined_int["N", 512]()
    comptime K = get_defined_int["K", 1024]()
    comptime GROUP = get_defined_int["CTA_GROUP", 1]()
    comptime fp8 = DType.float8_e4m3fn
    comptime config = MatmulConfig[fp8, fp8, DType.bfloat16, True](
        cluster_shape=Index(GROUP, 1, 1),
        mma_shape=Index(128 * GROUP, 128, 32),
        block_swizzle_size=0,
        cta_group=GROUP,
        gemm_kind=GEMMKind.BLOCK_SCALED_1D2D_FP8,
    )
    with DeviceContext() as ctx:
        var a_memory = ctx.enqueue_create_buffer[fp8](M * K)
        var b_memory = ctx.enqueue_create_buffer[fp8](N * K)
        var c_memory = ctx.enqueue_create_buffer[DType.bfloat16](M * N)
        var a_scales = ctx.enqueue_create_buffer[DType.float32](M * K // 128)
        var b_scales = ctx.enqueue_create_buffer[DType.float32](
            N * K // 16384
        )
        blockwise_fp8_matmul[
            transpose_b=True,
            a_scales_type=DType.float32,
            b_scales_type=DType.float32,
            config=config,
        ](
            TileTensor(c_memory, row_major(Coord(Int(M), Idx[N]))),
            TileTensor(a_memory, row_major(Coord(Int(M), Idx[K]))),
            TileTensor(b_memory, row_major(Coord(Idx[N], Idx[K]))),
            TileTensor(a_scales, row_major(Coord(Idx[K // 128], Int(M)))),
            TileTensor(
                b_scales, row_major(Coord(Idx[N // 128], Idx[K // 128]))
            ),
            ctx,
        )
        ctx.synchronize()
        _ = a_memory^
        _ = b_memory^
        _ = c_memory^
        _ = a_scales^
        _ = b_scales^
