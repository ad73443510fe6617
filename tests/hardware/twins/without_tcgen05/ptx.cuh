// ptx.cuh without setmaxnreg: every thread keeps its 128 registers, as the lane that computes a product needs more than 40.
#pragma once

#define take_registers real_take_registers
#define leave_registers real_leave_registers
#include "real_ptx.cuh"
#undef take_registers
#undef leave_registers

template <unsigned COUNT>
static __device__ __forceinline__ void take_registers() {}
template <unsigned COUNT>
static __device__ __forceinline__ void leave_registers() {}
