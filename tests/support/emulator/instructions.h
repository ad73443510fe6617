// The instructions of the headers in hwkernels that contain assembly, by the names of their functions, on the machine.
#pragma once

#include <cmath>
#include <utility>

#include "machine.h"

#define __device__
#define __global__
#define __shared__
#define __forceinline__ inline
#define __noinline__
#define __launch_bounds__(threads, blocks)
#define __grid_constant__
#define __align__(bytes) __attribute__((aligned(bytes)))

// One build holds wrong twins, too: this is `right`, unless this twin is to run.
#define TWIN(number, right, wrong) (machine::m->twin == (number) ? (wrong) : (right))

struct uint4 {
    unsigned x, y, z, w;
};
struct TensorMap;

struct Place {
    unsigned (*get)();
    operator unsigned() const { return get(); }
};
static const struct { Place x; } threadIdx = {{[] { return machine::m->now->thread; }}},
                                 blockIdx = {{[] { return machine::m->now->block->index; }}};

static inline machine::Meeting &own_warp() { return machine::block().warps[machine::m->now->thread / 32]; }
static inline bool __all_sync(unsigned, bool x) { return machine::meet(own_warp(), 32, x); }
static inline bool __any_sync(unsigned, bool x) { return !machine::meet(own_warp(), 32, !x); }
static inline void __syncwarp() { machine::meet(own_warp(), 32, true); }
static inline bool __syncthreads_and(bool x) { return machine::meet(machine::block().named[0], machine::m->threads, x); }
static inline void __syncthreads() { machine::meet(machine::block().named[0], machine::m->threads, true); }
[[noreturn]] static inline void __trap() { machine::fail("trap"); }
template <class T>
static inline T __ldg(const T *from) { return *from; }
template <class To, class From>
static inline To bits_of(From value) {
    To to;
    static_assert(sizeof to == sizeof value);
    memcpy(&to, &value, sizeof to);
    return to;
}
// What the lane of this warp has whose number differs in these bits.
template <class T>
static inline T __shfl_xor_sync(unsigned, T mine, unsigned bits) {
    std::array<uint32_t, 32> &exchanged = machine::block().exchanged[machine::m->now->thread / 32];
    exchanged[machine::m->now->thread % 32] = bits_of<uint32_t>(mine);
    __syncwarp();
    const T other = bits_of<T>(exchanged[machine::m->now->thread % 32 ^ bits]);
    __syncwarp();
    return other;
}
static inline float __int_as_float(int bits) { return bits_of<float>(bits); }
static inline float __uint_as_float(unsigned bits) { return bits_of<float>(bits); }
static inline unsigned __float_as_uint(float value) { return bits_of<unsigned>(value); }
static inline unsigned long long __cvta_generic_to_shared(const void *) { return machine::SHARED_AT; }  // of dynamic memory
static inline unsigned atomicExch(unsigned *at, unsigned value) { return std::exchange(*at, value); }
static inline unsigned atomicCAS(unsigned *at, unsigned old, unsigned value) {
    return *at == old ? std::exchange(*at, value) : *at;
}

// mbarrier.cuh

static inline bool elect_one() { return machine::m->now->thread % 32 == 0; }
static inline void mbarrier_init(unsigned barrier, unsigned count) {
    if (!machine::block().barriers.emplace(barrier, machine::Barrier{count, count, 0, 0}).second) machine::fail("init again");
}
static inline void mbarrier_init_fence() {}
static inline unsigned long long mbarrier_inval(unsigned barrier) {
    const machine::Barrier &found = machine::barrier_at(machine::block(), barrier);
    const bool whole = found.tx == 0 && found.pending == found.expected;
    if (!whole && machine::m->stop == 0) machine::fail("a barrier is left in the middle of a phase");
    return found.done;
}
static inline void mbarrier_arrive(unsigned barrier) { machine::arrive(barrier); }
static inline void mbarrier_arrive_expect_tx(unsigned barrier, unsigned bytes) {
    machine::barrier_at(machine::block(), barrier).tx += bytes;
    machine::signal(machine::block(), barrier, 1, 0);
}
static inline bool mbarrier_try_wait(unsigned barrier, unsigned parity) {
    if (parity > 1) machine::fail("parity");
    const bool done = (machine::barrier_at(machine::block(), barrier).done & 1) != parity;
    if (!done) machine::yield();
    return done;
}
static inline uint4 load_shared(unsigned address) {
    uint4 v;
    memcpy(&v, machine::shared(machine::block(), address, 16), 16);
    return v;
}
static inline unsigned clock_cycles() {
    machine::yield();  // in a loop on it, time passes
    return machine::m->time;
}
static inline unsigned long long clock_cycles64() { return machine::m->time; }
static inline unsigned globaltimer_low() {
    machine::yield();  // a loop may wait for it
    return machine::m->time;
}

// tensor_map.cuh. A map begins with the address of what the host said; sizes in elements, strides in bytes, innermost first.

struct Tensor {
    uint8_t *data;
    int64_t rank, element, swizzle, im2col;
    int64_t shape[5], strides[5], box[5];  // im2col: channels and pixels
    int64_t lower[2], upper[2], step;      // im2col: the corners (x, y) and the stride of both
};

static inline const Tensor &tensor_of(const TensorMap *map) { return **(const Tensor *const *)map; }

// The shared address of a byte of a box.
static inline unsigned swizzled(unsigned base, unsigned offset, int64_t swizzle) {
    const unsigned address = base + offset, pieces = swizzle < 32 ? 1 : swizzle / 16;
    if (base % (swizzle < 16 ? 128 : 8 * swizzle)) machine::fail("a box is not aligned");
    return address ^ (address >> 7 & (pieces - 1)) << 4;
}

static inline uint8_t *element_of(const Tensor &tensor, const int64_t (&at)[5]) {
    int64_t offset = 0;
    for (int d = 0; d < tensor.rank; ++d) {
        if (at[d] < 0 || at[d] >= tensor.shape[d]) return nullptr;
        offset += at[d] * tensor.strides[d];
    }
    return tensor.data + offset;
}

static inline int64_t box_elements(const Tensor &tensor) {
    int64_t count = 1;
    for (int d = 0; d < (tensor.im2col ? 2 : tensor.rank); ++d) count *= tensor.box[d];
    return count;
}

// The coordinates of element i of a box from `from` on.
static inline void box_element(const Tensor &tensor, const int64_t (&from)[5], int64_t i, int64_t (&at)[5]) {
    for (int d = 0; d < tensor.rank; ++d) {
        at[d] = from[d] + i % tensor.box[d];
        i /= tensor.box[d];
    }
}

// The same of im2col: pixel after pixel through the box between the corners, then every pixel is shifted.
static inline void im2col_element(const Tensor &tensor, const int64_t (&from)[5], const int64_t (&shift)[2], int64_t i,
                                  int64_t (&at)[5]) {
    const int64_t wide = (tensor.shape[1] - 1 + tensor.upper[0] - tensor.lower[0]) / tensor.step + 1;
    const int64_t high = (tensor.shape[2] - 1 + tensor.upper[1] - tensor.lower[1]) / tensor.step + 1;
    const int64_t x = (from[1] - tensor.lower[0]) / tensor.step, y = (from[2] - tensor.lower[1]) / tensor.step;
    const int64_t pixel = (from[3] * high + y) * wide + x + i / tensor.box[0];
    at[0] = from[0] + i % tensor.box[0];
    at[1] = pixel % wide * tensor.step + tensor.lower[0] + shift[0];
    at[2] = pixel / wide % high * tensor.step + tensor.lower[1] + shift[1];
    at[3] = pixel / wide / high;
}

template <class At>
static inline void copy_in(const Tensor &tensor, unsigned to, unsigned barrier, At at_of) {
    machine::Block &block = machine::block();
    machine::soon([&tensor, to, barrier, at_of, &block] {
        const int64_t count = box_elements(tensor);
        for (int64_t i = 0; i < count; ++i) {
            int64_t at[5];
            at_of(i, at);
            const uint8_t *from = element_of(tensor, at);
            uint8_t *there = machine::shared(block, swizzled(to, i * tensor.element, tensor.swizzle), tensor.element);
            if (from != nullptr)
                memcpy(there, from, tensor.element);
            else
                memset(there, 0, tensor.element);
        }
        machine::signal(block, barrier, 0, -count * tensor.element);
    });
}

static inline void load_box(unsigned to, const TensorMap *map, int rank, int64_t x, int64_t y, int64_t z, unsigned barrier) {
    const Tensor &tensor = tensor_of(map);
    if (tensor.im2col || tensor.rank != rank) machine::fail("another kind of map");
    copy_in(tensor, to, barrier, [&tensor, x, y, z](int64_t i, int64_t (&at)[5]) {
        const int64_t from[5] = {x, y, z};
        box_element(tensor, from, i, at);
    });
}
static inline void tensor_load_2d(unsigned to, const TensorMap *map, int x, int y, unsigned barrier) {
    load_box(to, map, 2, x, y, 0, barrier);
}
static inline void tensor_load_3d(unsigned to, const TensorMap *map, int x, int y, int z, unsigned barrier) {
    load_box(to, map, 3, x, y, z, barrier);
}
static inline void tensor_load_im2col(unsigned to, const TensorMap *map, int channel, int x, int y, int image,
                                      unsigned short right_by, unsigned short down_by, unsigned barrier) {
    const Tensor &tensor = tensor_of(map);
    if (!tensor.im2col || tensor.rank != 4) machine::fail("another kind of map");
    if ((x - tensor.lower[0]) % tensor.step || (y - tensor.lower[1]) % tensor.step) machine::fail("between two pixels");
    copy_in(tensor, to, barrier, [=, &tensor](int64_t i, int64_t (&at)[5]) {
        const int64_t from[5] = {channel, x, y, image}, shift[2] = {right_by, down_by};
        im2col_element(tensor, from, shift, i, at);
    });
}
static inline void store_box(const TensorMap *map, int rank, int64_t x, int64_t y, int64_t z, unsigned from) {
    const Tensor &tensor = tensor_of(map);
    if (tensor.im2col || tensor.rank != rank) machine::fail("another kind of map");
    machine::Block &block = machine::block();
    const std::shared_ptr<machine::Group> group = machine::m->now->groups.back();
    ++group->unread;
    machine::soon([&tensor, &block, x, y, z, from, group] {
        for (int64_t i = 0; i < box_elements(tensor); ++i) {
            const int64_t corner[5] = {x, y, z};
            int64_t at[5];
            box_element(tensor, corner, i, at);
            uint8_t *to = element_of(tensor, at);
            const unsigned offset = swizzled(from, i * tensor.element, tensor.swizzle);
            if (to != nullptr) memcpy(to, machine::shared(block, offset, tensor.element), tensor.element);
        }
        --group->unread;
    });
}
static inline void tensor_store_2d(const TensorMap *map, int x, int y, unsigned from) { store_box(map, 2, x, y, 0, from); }
static inline void tensor_store_3d(const TensorMap *map, int x, int y, int z, unsigned from) {
    store_box(map, 3, x, y, z, from);
}
static inline void async_proxy_fence() {}
static inline void bulk_commit() { machine::m->now->groups.push_back(std::make_shared<machine::Group>()); }
template <int PENDING>
static inline void bulk_wait_read() {
    const auto &groups = machine::m->now->groups;  // the last is open
    machine::until([&] {
        for (size_t g = 0; g + 1 + PENDING < groups.size(); ++g)
            if (groups[g]->unread != 0) return false;
        return true;
    });
}
template <int PENDING>
static inline void bulk_wait() { bulk_wait_read<PENDING>(); }

// tcgen05.cuh

static constexpr unsigned TMEM_AT = 32;  // where an allocation begins, if there is room

template <unsigned WANTED>
static inline void tcgen05_alloc(unsigned to) {
    __syncwarp();
    if (elect_one()) {
        if (machine::block().allocated) machine::fail("allocated twice");
        machine::block().allocated = WANTED;
        const unsigned at = WANTED + TMEM_AT <= machine::COLUMNS ? TMEM_AT : 0;
        memcpy(machine::shared(machine::block(), to, 4), &at, 4);
    }
    __syncwarp();
}
template <unsigned WANTED>
static inline void tcgen05_dealloc(unsigned address) {
    __syncwarp();
    if (elect_one()) {
        if (machine::block().allocated != WANTED || address >> 16) machine::fail("what is given back was not allocated");
        machine::block().allocated = 0;
    }
    __syncwarp();
}
static inline void tcgen05_before_sync() {}
static inline void tcgen05_after_sync() {}
// So many columns of this thread's lane.
static inline uint32_t *columns_of(unsigned address, unsigned count) {
    const unsigned warp = machine::m->now->thread / 32 % 4, column = address & 0xffff;
    if (address >> 16 != 32 * warp) machine::fail("lanes of another warp");
    if (!machine::block().allocated || column + count > machine::COLUMNS) machine::fail("columns that are not there");
    return &machine::block().tmem[(32 * warp + machine::m->now->thread % 32) * machine::COLUMNS + column];
}
static inline void tcgen05_load(unsigned (&v)[32], unsigned address) {
    __syncwarp();
    memcpy(v, columns_of(address, 32), sizeof v);
    __syncwarp();
}
static inline void tcgen05_store(unsigned address, const unsigned *v) {
    __syncwarp();
    memcpy(columns_of(address, 16), v, 16 * sizeof *v);
    __syncwarp();
}
static inline void tcgen05_store_wait() {}

static inline float bf16(const uint8_t *at) {
    uint16_t bits;
    memcpy(&bits, at, 2);
    return bits_of<float>(uint32_t(bits) << 16);
}
static inline float e4m3(const uint8_t *at) {
    const int exponent = *at >> 3 & 15, fraction = *at & 7;
    const float size = exponent ? std::ldexp(8 + fraction, exponent - 10) : std::ldexp(fraction, -9);
    return *at & 128 ? -size : size;
}

// An operand of `rows` rows and 32 bytes of K, as its descriptor says: 128-byte swizzle, groups of 8 rows of K-major or, of
// MN-major, of 8 elements of K, whose blocks of 128 bytes of rows lie `leading` apart.
static inline std::vector<float> operand(machine::Block &block, unsigned long long descriptor, unsigned rows,
                                         unsigned element, bool mn_major, float (*decode)(const uint8_t *),
                                         unsigned version = 1) {
    if ((descriptor >> 61) != 2 || (descriptor >> 46 & 7) != version || (descriptor >> 49 & 0xfff) != 0)
        machine::fail("another kind of descriptor");
    const unsigned start = (descriptor & 0x3fff) << 4, stride = (descriptor >> 32 & 0x3fff) << 4;
    const unsigned leading = (descriptor >> 16 & 0x3fff) << 4, block_rows = 128 / element;
    std::vector<float> values;
    for (unsigned row = 0; row < rows; ++row)
        for (unsigned k = 0; k < 32 / element; ++k) {
            const unsigned k_at = start + row / 8 * stride + row % 8 * 128 + k * element;
            const unsigned mn_at = start + row / block_rows * leading + row % block_rows * element + k / 8 * stride + k % 8 * 128;
            const unsigned address = mn_major ? mn_at : k_at;
            values.push_back(decode(machine::shared(block, address ^ (address >> 7 & 7) << 4, element)));
        }
    return values;
}

// left: makes the values of A when the product is made.
static inline void product(unsigned d, std::function<std::vector<float>(machine::Block &)> left_of, unsigned long long b,
                           unsigned shape, bool accumulate, unsigned element, unsigned types,
                           float (*decode)(const uint8_t *)) {
    const bool mn_major = shape >> 16 & 1;
    if ((shape & ~(1u << 16 | 63u << 17 | 31u << 24)) != (1u << 4 | types)) machine::fail("another kind of product");
    machine::Block &block = machine::block();
    const unsigned rows = (shape >> 24 & 31) * 16, columns = (shape >> 17 & 63) * 8, depth = 32 / element;
    if (rows != 128 || columns < 16 || d >> 16 || (d & 0xffff) + columns > machine::COLUMNS || !block.allocated)
        machine::fail("a product that does not fit");
    block.tensor_pipe.push_back([=, &block] {
        const std::vector<float> left = left_of(block);
        const std::vector<float> right = operand(block, b, columns, element, mn_major, decode);
        for (unsigned row = 0; row < rows; ++row)
            for (unsigned column = 0; column < columns; ++column) {
                uint32_t &to = block.tmem[row * machine::COLUMNS + d + column];
                float sum = accumulate ? __uint_as_float(to) : 0.0f;
                for (unsigned k = 0; k < depth; ++k) sum += left[row * depth + k] * right[column * depth + k];
                to = __float_as_uint(sum);
            }
    });
}
static inline void product(unsigned d, unsigned long long a, unsigned long long b, unsigned shape, bool accumulate,
                           unsigned element, unsigned types, float (*decode)(const uint8_t *)) {
    const auto left = [=](machine::Block &block) { return operand(block, a, machine::LANES, element, false, decode); };
    product(d, left, b, shape, accumulate, element, types, decode);
}
// A of 16 of K in tensor memory, two to a column.
static inline void tcgen05_mma_tensor(unsigned d, unsigned a, unsigned long long b, unsigned shape, unsigned accumulate) {
    if (a >> 16 || a + 8 > machine::COLUMNS) machine::fail("columns that are not there");
    const auto left = [a](machine::Block &block) {
        std::vector<float> values;
        for (unsigned row = 0; row < machine::LANES; ++row)
            for (unsigned k = 0; k < 16; ++k) {
                const uint32_t pair = block.tmem[row * machine::COLUMNS + a + k / 2];
                values.push_back(__uint_as_float(k % 2 ? pair & 0xffff0000 : pair << 16));
            }
        return values;
    };
    product(d, left, b, shape, accumulate != 0, 2, 1u << 7 | 1u << 10, bf16);
}
static inline void tcgen05_mma(unsigned d, unsigned long long a, unsigned long long b, unsigned shape, unsigned accumulate) {
    product(d, a, b, shape, accumulate != 0, 2, 1u << 7 | 1u << 10, bf16);
}
static inline void tcgen05_mma_fp8(unsigned d, unsigned long long a, unsigned long long b, unsigned shape,
                                   unsigned accumulate) {
    product(d, a, b, shape, accumulate != 0, 1, 0, e4m3);
}
static inline void tcgen05_commit(unsigned barrier) {
    machine::Block &block = machine::block();
    block.tensor_pipe.push_back([&block, barrier] { machine::signal(block, barrier, 1, 0); });
}
static inline void clc_try_cancel(unsigned answer, unsigned barrier) {
    machine::Block &block = machine::block();
    if (block.refused) machine::fail("a request after one that found no tile");
    machine::soon([&block, answer, barrier] {
        const bool found = machine::m->next < machine::m->grid;
        const unsigned words[4] = {found, found ? machine::m->next++ : 0, 0, 0};
        block.refused = !found;
        memcpy(machine::shared(block, answer, 16), words, 16);
        machine::signal(block, barrier, 0, -16);
    });
}
static inline bool clc_answer(unsigned answer, unsigned &x) {
    const uint4 words = load_shared(answer);
    x = words.y;
    return words.x != 0;
}

// ptx.cuh

static inline unsigned load_shared_32(unsigned address) {
    unsigned value;
    memcpy(&value, machine::shared(machine::block(), address, 4), 4);
    return value;
}
static inline void store_shared(unsigned address, const uint4 &v) {
    memcpy(machine::shared(machine::block(), address, 16), &v, 16);
}
template <unsigned COUNT>
static inline void named_arrive(unsigned name) {
    machine::Meeting &meeting = machine::block().named[name];
    if (++meeting.arrived == COUNT) {
        meeting.arrived = 0;
        ++meeting.met;
    }
}
template <unsigned COUNT>
static inline void named_sync(unsigned name) { machine::meet(machine::block().named[name], COUNT, true); }
template <unsigned NAME, unsigned COUNT>
static inline void named_arrive() { named_arrive<COUNT>(NAME); }
template <unsigned NAME, unsigned COUNT>
static inline void named_sync() { named_sync<COUNT>(NAME); }
template <unsigned NAME, unsigned COUNT>
static inline bool named_all(bool x) { return machine::meet(machine::block().named[NAME], COUNT, x); }
static inline void store_shared_32(unsigned address, unsigned value) {
    memcpy(machine::shared(machine::block(), address, 4), &value, 4);
}
static inline float exp2_fast(float x) { return std::exp2(x); }
// A warp's registers beyond those that a thread of a CTA of 512 threads has, or of 384.
static inline unsigned registers_at_launch() { return machine::m->threads > 384 ? 128 : 168; }
template <unsigned COUNT>
static inline void leave_registers() {
    __syncwarp();
    if (elect_one()) machine::block().spare_registers += registers_at_launch() - COUNT;
}
template <unsigned COUNT>
static inline void take_registers() {
    __syncwarp();
    if (elect_one()) {
        machine::until([] { return machine::block().spare_registers >= COUNT - registers_at_launch(); });
        machine::block().spare_registers -= COUNT - registers_at_launch();
    }
    __syncwarp();
}
static inline unsigned bf16_pair(float low, float high) {
    const auto rounded = [](float value) {
        const unsigned bits = __float_as_uint(value);
        return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    };
    return rounded(low) | rounded(high) << 16;
}
