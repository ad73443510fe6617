// The roles, barriers and recording sites of exchange, from its protocol by `pipesim table`: read by the kernel
// (through table.cuh) and by pipesim.

// name, warps. Warps are numbered in this order.
PIPESIM_ROLE(math, MATH_WARPS)
PIPESIM_ROLE(loader, 1)

// name, stages, arrivals that complete a phase. Barriers lie in shared memory in this order.
PIPESIM_BARRIER(full, STAGES, 1)
PIPESIM_BARRIER(empty, STAGES, 2 * MATH_WARPS)

// name, role, kind, barrier (none where it touches none). Each role's sites stand in program order.
PIPESIM_SITE(math_wait_full, math, WAIT_ENTER, full)
PIPESIM_SITE(math_got_full, math, WAIT_RETURN, full)
PIPESIM_SITE(math_work_begin, math, WORK_BEGIN, none)
PIPESIM_SITE(math_work_end, math, WORK_END, none)
PIPESIM_SITE(math_arrive_empty, math, ARRIVE, empty)
PIPESIM_SITE(loader_wait_empty, loader, WAIT_ENTER, empty)
PIPESIM_SITE(loader_got_empty, loader, WAIT_RETURN, empty)
PIPESIM_SITE(loader_expect_full, loader, EXPECT, full)
PIPESIM_SITE(loader_copy_full, loader, COPY, full)
