// The recording sites of the scheduler warp in clc_sm100.cuh: part of a table that has its role and its barriers.

PIPESIM_SITE(scheduler_wait_clc_throttle_full, scheduler, WAIT_ENTER, clc_throttle_full)
PIPESIM_SITE(scheduler_got_clc_throttle_full, scheduler, WAIT_RETURN, clc_throttle_full)
PIPESIM_SITE(scheduler_arrive_clc_throttle_empty, scheduler, ARRIVE, clc_throttle_empty)
PIPESIM_SITE(scheduler_wait_clc_empty, scheduler, WAIT_ENTER, clc_empty)
PIPESIM_SITE(scheduler_got_clc_empty, scheduler, WAIT_RETURN, clc_empty)
PIPESIM_SITE(scheduler_expect_clc_full, scheduler, EXPECT, clc_full)
PIPESIM_SITE(scheduler_copy_clc_full, scheduler, COPY, clc_full)
PIPESIM_SITE(scheduler_wait_clc_full, scheduler, WAIT_ENTER, clc_full)
PIPESIM_SITE(scheduler_got_clc_full, scheduler, WAIT_RETURN, clc_full)
PIPESIM_SITE(scheduler_arrive_clc_empty, scheduler, ARRIVE, clc_empty)
