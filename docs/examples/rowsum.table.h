// The roles, barriers and recording sites of rowsum.cu: read by the kernel (through table.cuh) and by pipesim.

// name, warps
PIPESIM_ROLE(math, MATH_WARPS)
PIPESIM_ROLE(loader, 1)

// name, stages, arrivals that complete a phase
PIPESIM_BARRIER(full, STAGES, 1)
PIPESIM_BARRIER(empty, STAGES, MATH_WARPS)

// name, role, kind, barrier
PIPESIM_SITE(math_waits, math, WAIT_ENTER, full)
PIPESIM_SITE(math_goes, math, WAIT_RETURN, full)
PIPESIM_SITE(math_adds, math, WORK_BEGIN, none)
PIPESIM_SITE(math_added, math, WORK_END, none)
PIPESIM_SITE(math_frees, math, ARRIVE, empty)
PIPESIM_SITE(loader_waits, loader, WAIT_ENTER, empty)
PIPESIM_SITE(loader_goes, loader, WAIT_RETURN, empty)
PIPESIM_SITE(loader_expects, loader, EXPECT, full)
PIPESIM_SITE(loader_copies, loader, COPY, full)
