// One thread carries out a list of operations on one mbarrier and says after each what both parities answer.
//
// ops: [count][2], a code of `Code` and its operand. out, in memory that outlives a trap: for each operation 8 when it
// begins and, when it is done, 4 + (1 if parity 0 has completed) + (2 if parity 1 has); then the barrier's 8 bytes as an
// ordinary load finds them, the same after inval, and 1 at the end. Parities are not asked while no barrier is there.
#include "operations.cuh"

enum Code : unsigned {
    CODE_INIT, CODE_EXPECT_TX, CODE_ARRIVE, CODE_ARRIVE_EXPECT_TX, CODE_COMPLETE_TX, CODE_ARRIVE_DROP,
    CODE_ARRIVE_NO_COMPLETE, CODE_INVAL
};

extern "C" __global__ void sequences(const unsigned *ops, unsigned count, unsigned long long *out) {
    __shared__ __align__(8) unsigned long long memory;
    volatile unsigned long long *said = out;
    const unsigned barrier = shared_address(&memory);
    memory = 0;
    bool live = false;
    for (unsigned i = 0; i < count; ++i) {
        const unsigned operand = ops[2 * i + 1];
        said[i] = 8;
        __threadfence_system();
        switch (ops[2 * i]) {
            case CODE_INIT: mbarrier_init(barrier, operand); live = true; break;
            case CODE_EXPECT_TX: mbarrier_expect_tx(barrier, operand); break;
            case CODE_ARRIVE: mbarrier_arrive_count(barrier, operand); break;
            case CODE_ARRIVE_EXPECT_TX: mbarrier_arrive_expect_tx(barrier, operand); break;
            case CODE_COMPLETE_TX: mbarrier_complete_tx(barrier, operand); break;
            case CODE_ARRIVE_DROP: mbarrier_arrive_drop(barrier, operand); break;
            case CODE_ARRIVE_NO_COMPLETE: mbarrier_arrive_no_complete(barrier, operand); break;
            case CODE_INVAL: mbarrier_inval(barrier); live = false; break;
        }
        unsigned answers = 0;
        if (live) answers = mbarrier_test_wait(barrier, 0) + 2 * mbarrier_test_wait(barrier, 1);
        said[i] = 4 + answers;
        __threadfence_system();
    }
    said[count] = load_shared64(barrier);
    if (live) mbarrier_inval(barrier);
    said[count + 1] = load_shared64(barrier);
    said[count + 2] = 1;
}
