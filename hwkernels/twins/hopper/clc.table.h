// The recording sites of the scheduler warp in clc.cuh: part of a table that has its role and its barriers.

PIPESIM_SITE(scheduler_wait_throttle_full, scheduler, WAIT_ENTER, throttle_full)
PIPESIM_SITE(scheduler_got_throttle_full, scheduler, WAIT_RETURN, throttle_full)
PIPESIM_SITE(scheduler_arrive_throttle_empty, scheduler, ARRIVE, throttle_empty)
PIPESIM_SITE(scheduler_wait_clc_empty, scheduler, WAIT_ENTER, clc_empty)
PIPESIM_SITE(scheduler_got_clc_empty, scheduler, WAIT_RETURN, clc_empty)
PIPESIM_SITE(scheduler_work_begin, scheduler, WORK_BEGIN, none)
PIPESIM_SITE(scheduler_work_end, scheduler, WORK_END, none)
PIPESIM_SITE(scheduler_arrive_clc_full, scheduler, ARRIVE, clc_full)
PIPESIM_SITE(scheduler_wait_clc_full, scheduler, WAIT_ENTER, clc_full)
PIPESIM_SITE(scheduler_got_clc_full, scheduler, WAIT_RETURN, clc_full)
PIPESIM_SITE(scheduler_arrive_clc_empty, scheduler, ARRIVE, clc_empty)
