// In place of the header: a warp's products are made group by group when the seed chooses, at the latest when they are waited
// for. They read shared memory and registers then, and write registers then.
#pragma once

#define Wgmma WgmmaOfTheChip  // its members contain assembly, and are gone
#include "chip_wgmma.cuh"
#undef Wgmma

static inline machine::Products &own_products() { return machine::block().products[machine::m->now->thread / 32]; }
static inline void wgmma_fence() { __syncwarp(); }
static inline void wgmma_commit() {
    __syncwarp();
    machine::Products &own = own_products();
    if (elect_one()) own.groups.push_back(std::exchange(own.open, {}));
    __syncwarp();
}
// A product is made by four warps together: none is finished before the last of them has issued it.
template <int PENDING>
static inline void wgmma_wait() {
    machine::meet(machine::block().warp_groups[machine::m->now->thread / 128], 128, true);
    if (elect_one())
        while (own_products().groups.size() > PENDING) machine::run_group(own_products());
    __syncwarp();
}
template <int COUNT>
static inline void wgmma_hold(float (&)[COUNT]) {}
template <int COUNT>
static inline void wgmma_hold(unsigned (&)[COUNT][4]) {}

// One of a warp's products: 16 rows. left: the values of its A, row by row.
template <int N>
static inline void issue_product(float (&d)[N / 2], const unsigned *a, unsigned long long b, bool mn_major, bool accumulate,
                                 std::function<std::vector<float>(const std::array<const unsigned *, 32> &)> left_of) {
    machine::Block &block = machine::block();
    machine::Products &own = own_products();
    const unsigned lane = machine::m->now->thread % 32;
    own.sums[lane] = d;
    own.left[lane] = a;
    __syncwarp();
    if (lane == 0)
        own.open.push_back([=, &block, sums = own.sums, registers = own.left] {
            const std::vector<float> left = left_of(registers), right = operand(block, b, N, 2, mn_major, bf16, 0);
            for (unsigned t = 0; t < 32; ++t)
                for (unsigned e = 0; e < N / 2; ++e) {
                    const unsigned row = t / 4 + e / 2 % 2 * 8, column = e / 4 * 8 + t % 4 * 2 + e % 2;
                    float sum = accumulate ? sums[t][e] : 0.0f;
                    for (unsigned k = 0; k < 16; ++k) sum += left[16 * row + k] * right[16 * column + k];
                    sums[t][e] = sum;
                }
        });
    __syncwarp();
}

template <int N, int TRANSPOSE = 0>
struct Wgmma {
    static void shared(float (&d)[N / 2], unsigned long long a, unsigned long long b, unsigned accumulate) {
        machine::Block &block = machine::block();
        const unsigned first = machine::m->now->thread / 32 % 4 * 16;
        issue_product<N>(d, nullptr, b, TRANSPOSE, accumulate != 0, [=, &block](const auto &) {
            const std::vector<float> all = operand(block, a, 64, 2, false, bf16, 0);
            return std::vector<float>(all.begin() + 16 * first, all.begin() + 16 * (first + 16));
        });
    }
    static void registers(float (&d)[N / 2], const unsigned (&a)[4], unsigned long long b, unsigned accumulate) {
        issue_product<N>(d, a, b, TRANSPOSE, accumulate != 0, [](const auto &of_lane) {
            std::vector<float> values(16 * 16);
            for (unsigned t = 0; t < 32; ++t)
                for (unsigned r = 0; r < 4; ++r)  // two halves of K, of rows t / 4 and 8 below
                    for (unsigned c = 0; c < 2; ++c) {
                        const unsigned pair = of_lane[t][r], row = t / 4 + r % 2 * 8, k = r / 2 * 8 + t % 4 * 2 + c;
                        values[16 * row + k] = __uint_as_float(c ? pair & 0xffff0000 : pair << 16);
                    }
            return values;
        });
    }
};
