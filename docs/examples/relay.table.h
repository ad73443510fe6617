// The roles, barriers and recording sites of relay, from its protocol by `pipesim table`: read by the kernel
// (through table.cuh) and by pipesim.

// name, warps. Warps are numbered in this order.
PIPESIM_ROLE(math, 4)
PIPESIM_ROLE(load, 4)
PIPESIM_ROLE(store, 1)

// name, stages, arrivals that complete a phase. Barriers lie in shared memory in this order.
PIPESIM_BARRIER(in_full, STAGES, 128)
PIPESIM_BARRIER(in_empty, STAGES, 4)
PIPESIM_BARRIER(out_full, 2, 1)

// name, role, kind, barrier (none where it touches none). Each role's sites stand in program order.
PIPESIM_SITE(math_wait_in_full, math, WAIT_ENTER, in_full)
PIPESIM_SITE(math_got_in_full, math, WAIT_RETURN, in_full)
PIPESIM_SITE(math_arrive_in_empty, math, ARRIVE, in_empty)
PIPESIM_SITE(math_work_begin, math, WORK_BEGIN, none)
PIPESIM_SITE(math_work_end, math, WORK_END, none)
PIPESIM_SITE(math_sync_2, math, BAR_ENTER, 2)
PIPESIM_SITE(math_synced_2, math, BAR_RETURN, 2)
PIPESIM_SITE(math_sync_1, math, BAR_ENTER, 1)
PIPESIM_SITE(math_synced_1, math, BAR_RETURN, 1)
PIPESIM_SITE(math_arrive_out_full, math, ARRIVE, out_full)
PIPESIM_SITE(math_sync_3, math, BAR_ENTER, 3)
PIPESIM_SITE(math_synced_3, math, BAR_RETURN, 3)
PIPESIM_SITE(load_wait_in_empty, load, WAIT_ENTER, in_empty)
PIPESIM_SITE(load_got_in_empty, load, WAIT_RETURN, in_empty)
PIPESIM_SITE(load_cp_async_arrive_in_full, load, CP_ASYNC_ARRIVE, in_full)
PIPESIM_SITE(load_arrive_in_full, load, ARRIVE, in_full)
PIPESIM_SITE(store_bar_arrive_3, store, BAR_ARRIVE, 3)
PIPESIM_SITE(store_bar_arrive_2, store, BAR_ARRIVE, 2)
PIPESIM_SITE(store_wait_out_full, store, WAIT_ENTER, out_full)
PIPESIM_SITE(store_got_out_full, store, WAIT_RETURN, out_full)
PIPESIM_SITE(store_group_commit_bulk, store, GROUP_COMMIT, bulk)
PIPESIM_SITE(store_wait_group_bulk, store, GROUP_ENTER, bulk)
PIPESIM_SITE(store_got_group_bulk, store, GROUP_RETURN, bulk)
