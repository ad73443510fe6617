// How a CTA of Blackwell's kernels ends after a wait gave up. NEVER RUN on a Blackwell GPU.
//
// A role returns false when one of its waits gave up, and signals nothing from then on; the other roles then give up, too, at
// their own deadline or when they see the stop flag. Warps that meet at named barriers keep every meeting that the others may
// come to, so that none waits for one that has left. Then the CTA ends as it always does, and its report says where it stood.
#pragma once

#include "ptx.cuh"
#include "report.cuh"

// All threads, each with what its role returned; true if none gave up. Else whatever was under way has landed: copies, products
// and answers must not arrive in a CTA that has ended, and no barrier is left to wait for them at.
static __device__ __forceinline__ bool all_done(bool done) {
    __syncwarp();
    if (__syncthreads_and(done)) return true;
    const unsigned begun = globaltimer_low();
    while (globaltimer_low() - begun < LANDING_NS) {
    }
    __syncwarp();
    return false;
}
