"""A tensor map out of its 128 bytes, for launches whose maps were not seen being encoded.

The CuTe DSL's host code writes the first 64 bytes itself, and a capture may begin after the maps were made. The format
is not documented. It was measured: 4,001 maps that ``cuTensorMapEncodeTiled`` and ``Im2col`` of driver 580.159 made on
compute capability 9.0 of random arguments agree with it, and so do the maps of FlashAttention 4 for 9.0 and 10.0. What
it leaves open (elements of 4 and 6 bits, atoms of a swizzle) is not decoded. Of words of 32 bits, the lowest bit first:

=========  ============================================================================================
words 0-1  the address
word 2     bit 0 im2col; 4-6 rank - 1; 7-10 element; 11-12 interleave; 13-14 swizzle; 16 rounds to tf32
words 3-6  strides / 16, of which word 7 has 4 higher bits each
words 8-12 sizes - 1
word 13    bits 0-14 element strides - 1, of 3 bits; 24-31 size - 1 of the box, in the first dimension
words 14-  sizes - 1 of the box in the others, 8 bits each; of im2col corners, then pixels - 1 in word 15
=========  ============================================================================================
"""

import struct

from pipesim.ptx.launch.values import TensorMap

MAP_BYTES = 128
_WORDS = struct.Struct("<16I")
READ_BYTES = _WORDS.size  #: those after them in a map of the CuTe DSL are what was on the stack of its host code
#: By the number of PTX's ``tensormap.replace.elemtype``, and whether values are rounded to tf32.
_ELEMENTS = {
    **dict(enumerate(("u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f32_ftz", "f64", "bf16"))),
    16 + 7: "tf32",
    16 + 8: "tf32_ftz",
}
_INTERLEAVES = ("none", "16B", "32B")
_SWIZZLES = ("none", "32B", "64B", "128B")
_IGNORED = 1 << 1 | 1 << 15 | 3 << 17 | 1 << 21  #: of word 2: fill, promotion in L2, and two that the CuTe DSL sets
_KNOWN = 0x1FFF1 | _IGNORED


def decoded_map(data: bytes) -> TensorMap | None:
    """The map whose bytes these are, at least 64 of them. None if they are no map of the format above."""
    words = _WORDS.unpack_from(data)
    kind, rank = words[2], (words[2] >> 4 & 7) + 1
    element = _ELEMENTS.get((kind >> 7 & 15) + (kind >> 12 & 16))
    interleave, swizzle = kind >> 11 & 3, kind >> 13 & 3
    im2col = bool(kind & 1)
    high, corner, last = words[7], words[13] >> 24, words[14] | words[15] << 32
    steps = [words[13] >> 3 * at & 7 for at in range(5)]
    strides = [words[3 + at] | (high >> 4 * at & 15) << 32 for at in range(4)]
    box = [corner, *(last >> 8 * at & 0xFF for at in range(4))]
    unused = [*steps[rank:], *words[8 + rank : 13], *strides[rank - 1 :], high >> 16, words[13] >> 15 & 0x1FF]
    unused += [words[15] >> 10] if im2col else [*box[rank:], words[15]]
    if kind & ~_KNOWN or element is None or interleave == 3 or rank > 5 or any(unused) or not any(words[:2]):
        return None
    return TensorMap(
        element,
        tuple(size + 1 for size in words[8 : 8 + rank]),
        (corner + 1,) if im2col else tuple(size + 1 for size in box[:rank]),
        tuple(stride << 4 for stride in strides[: rank - 1]),
        tuple(step + 1 for step in steps[:rank]) if any(steps) else (),
        _SWIZZLES[swizzle],
        _INTERLEAVES[interleave],
        (words[15] & 0x3FF) + 1 if im2col else 0,
    )
