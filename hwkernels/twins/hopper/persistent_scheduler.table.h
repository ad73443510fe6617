// The one place that names the roles, barriers and recording sites of persistent_scheduler.cu; see
// producer_consumer.table.h for how it is read. The protocol writes pipe.full for pipe_full, and so on.

PIPESIM_ROLE(scheduler, 1)
PIPESIM_ROLE(load, 1)
PIPESIM_ROLE(consumer, CONSUMER_WARPS)

PIPESIM_BARRIER(pipe_full, STAGES, 1)
PIPESIM_BARRIER(pipe_empty, STAGES, CONSUMER_WARPS)
PIPESIM_BARRIER(clc_full, CLC_STAGES, 1)
PIPESIM_BARRIER(clc_empty, CLC_STAGES, 64 + 32 * CONSUMER_WARPS)
PIPESIM_BARRIER(throttle_full, CLC_STAGES, 32)
PIPESIM_BARRIER(throttle_empty, CLC_STAGES, 32)

#include "clc.table.h"
PIPESIM_SITE(load_wait_throttle_empty, load, WAIT_ENTER, throttle_empty)
PIPESIM_SITE(load_got_throttle_empty, load, WAIT_RETURN, throttle_empty)
PIPESIM_SITE(load_arrive_throttle_full, load, ARRIVE, throttle_full)
PIPESIM_SITE(load_wait_pipe_empty, load, WAIT_ENTER, pipe_empty)
PIPESIM_SITE(load_got_pipe_empty, load, WAIT_RETURN, pipe_empty)
PIPESIM_SITE(load_expect_pipe_full, load, EXPECT, pipe_full)
PIPESIM_SITE(load_copy_pipe_full, load, COPY, pipe_full)
PIPESIM_SITE(load_wait_clc_full, load, WAIT_ENTER, clc_full)
PIPESIM_SITE(load_got_clc_full, load, WAIT_RETURN, clc_full)
PIPESIM_SITE(load_arrive_clc_empty, load, ARRIVE, clc_empty)
PIPESIM_SITE(consumer_wait_pipe_full, consumer, WAIT_ENTER, pipe_full)
PIPESIM_SITE(consumer_got_pipe_full, consumer, WAIT_RETURN, pipe_full)
PIPESIM_SITE(consumer_work_begin, consumer, WORK_BEGIN, none)
PIPESIM_SITE(consumer_work_end, consumer, WORK_END, none)
PIPESIM_SITE(consumer_arrive_pipe_empty, consumer, ARRIVE, pipe_empty)
PIPESIM_SITE(consumer_wait_clc_full, consumer, WAIT_ENTER, clc_full)
PIPESIM_SITE(consumer_got_clc_full, consumer, WAIT_RETURN, clc_full)
PIPESIM_SITE(consumer_arrive_clc_empty, consumer, ARRIVE, clc_empty)
