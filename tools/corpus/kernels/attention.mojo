# Launches Modular's attention, whose kernel its dispatch chooses. Parameters by -D NAME=VALUE.
from layout import Idx, TileTensor, row_major
from max.gpu.host import DeviceContext
from nn.attention.gpu.mha import flash_attention
from nn.attention.mha_mask import CausalMask, NullMask
from std.sys.defines import get_defined_int


def main() raises:
    comptime HEADS = get_defined_int["HEADS", 4]()
    comptime GROUP = get_defined_int["GROUP", 2]()
    comptime DEPTH = get_defined_int["DEPTH", 128]()
    comptime kind = DType.bfloat16
    comptime shared = HEADS // GROUP
    var queries = get_defined_int["QUERIES", 512]()
    var keys = get_defined_int["KEYS", 512]()
    with DeviceContext() as ctx:
        var q_memory = ctx.enqueue_create_buffer[kind](queries * HEADS * DEPTH)
        var k_memory = ctx.enqueue_create_buffer[kind](keys * shared * DEPTH)
        var v_memory = ctx.enqueue_create_buffer[kind](keys * shared * DEPTH)
        var o_memory = ctx.enqueue_create_buffer[kind](queries * HEADS * DEPTH)
        var q = TileTensor(
            q_memory, row_major((1, queries, Idx[HEADS], Idx[DEPTH]))
        )
        var k = TileTensor(
            k_memory, row_major((1, keys, Idx[shared], Idx[DEPTH]))
        )
        var v = TileTensor(
            v_memory, row_major((1, keys, Idx[shared], Idx[DEPTH]))
        )
        var o = TileTensor(
            o_memory, row_major((1, queries, Idx[HEADS], Idx[DEPTH]))
        )
        comptime if get_defined_int["CAUSAL", 0]() == 1:
            flash_attention(o, q, k, v, CausalMask(), Float32(0.125), ctx)
        else:
            flash_attention(o, q, k, v, NullMask(), Float32(0.125), ctx)
        ctx.synchronize()
        _ = q_memory^
        _ = k_memory^
        _ = v_memory^
        _ = o_memory^
