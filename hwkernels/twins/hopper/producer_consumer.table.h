// Made by tools/tables.py from the protocol producer_consumer: do not edit. table.cuh makes enums of it for the
// kernel, table.py parses it for the host. No include guard: it is included once for each kind of entry.

// name, warps. Warps are numbered in this order.
PIPESIM_ROLE(producer, 1)
PIPESIM_ROLE(consumer, CONSUMER_WARPS)

// name, stages, arrivals that complete a phase. Barriers lie in shared memory in this order.
PIPESIM_BARRIER(full, STAGES, 1)
PIPESIM_BARRIER(empty, STAGES, CONSUMER_WARPS * ARRIVE_LANES)

// name, role, kind, barrier (none where it touches none). Each role's sites stand in program order.
PIPESIM_SITE(producer_wait_empty, producer, WAIT_ENTER, empty)
PIPESIM_SITE(producer_got_empty, producer, WAIT_RETURN, empty)
PIPESIM_SITE(producer_expect_full, producer, EXPECT, full)
PIPESIM_SITE(producer_copy_full, producer, COPY, full)
PIPESIM_SITE(consumer_wait_full, consumer, WAIT_ENTER, full)
PIPESIM_SITE(consumer_got_full, consumer, WAIT_RETURN, full)
PIPESIM_SITE(consumer_work_begin, consumer, WORK_BEGIN, none)
PIPESIM_SITE(consumer_work_end, consumer, WORK_END, none)
PIPESIM_SITE(consumer_arrive_empty, consumer, ARRIVE, empty)
