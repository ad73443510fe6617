// Made by tools/tables.py from the protocol gemm_sm90: do not edit. table.cuh makes enums of it for the
// kernel, table.py parses it for the host. No include guard: it is included once for each kind of entry.

// name, warps. Warps are numbered in this order.
PIPESIM_ROLE(producer, 4)
PIPESIM_ROLE(consumer, 4 * NUM_CONSUMER)

// name, stages, arrivals that complete a phase. Barriers lie in shared memory in this order.
PIPESIM_BARRIER(full, RING_STAGES, 1)
PIPESIM_BARRIER(empty, RING_STAGES, NUM_CONSUMER)

// name, role, kind, barrier (none where it touches none). Each role's sites stand in program order.
PIPESIM_SITE(producer_try_empty, producer, TRY, empty)
PIPESIM_SITE(producer_wait_empty, producer, WAIT_ENTER, empty)
PIPESIM_SITE(producer_got_empty, producer, WAIT_RETURN, empty)
PIPESIM_SITE(producer_expect_full, producer, EXPECT, full)
PIPESIM_SITE(producer_copy_full, producer, COPY, full)
PIPESIM_SITE(consumer_arrive_empty, consumer, ARRIVE, empty)
PIPESIM_SITE(consumer_try_full, consumer, TRY, full)
PIPESIM_SITE(consumer_wait_full, consumer, WAIT_ENTER, full)
PIPESIM_SITE(consumer_got_full, consumer, WAIT_RETURN, full)
PIPESIM_SITE(consumer_work_begin, consumer, WORK_BEGIN, none)
PIPESIM_SITE(consumer_work_end, consumer, WORK_END, none)
