// Made by tools/tables.py from the protocol attention_sm90_fused: do not edit. table.cuh makes enums of it for the
// kernel, table.py parses it for the host. No include guard: it is included once for each kind of entry.

// name, warps. Warps are numbered in this order.
PIPESIM_ROLE(producer, 4)
PIPESIM_ROLE(consumer, 4 * NUM_CONSUMER)

// name, stages, arrivals that complete a phase. Barriers lie in shared memory in this order.
PIPESIM_BARRIER(q_full, 1, 1)
PIPESIM_BARRIER(kv_full, STAGES, 1)
PIPESIM_BARRIER(kv_empty, STAGES, 4 * NUM_CONSUMER)

// name, role, kind, barrier (none where it touches none). Each role's sites stand in program order.
PIPESIM_SITE(producer_expect_q_full, producer, EXPECT, q_full)
PIPESIM_SITE(producer_copy_q_full, producer, COPY, q_full)
PIPESIM_SITE(producer_wait_kv_empty, producer, WAIT_ENTER, kv_empty)
PIPESIM_SITE(producer_got_kv_empty, producer, WAIT_RETURN, kv_empty)
PIPESIM_SITE(producer_expect_kv_full, producer, EXPECT, kv_full)
PIPESIM_SITE(producer_copy_kv_full, producer, COPY, kv_full)
PIPESIM_SITE(consumer_wait_q_full, consumer, WAIT_ENTER, q_full)
PIPESIM_SITE(consumer_got_q_full, consumer, WAIT_RETURN, q_full)
PIPESIM_SITE(consumer_wait_kv_full, consumer, WAIT_ENTER, kv_full)
PIPESIM_SITE(consumer_got_kv_full, consumer, WAIT_RETURN, kv_full)
PIPESIM_SITE(consumer_arrive_kv_empty, consumer, ARRIVE, kv_empty)
PIPESIM_SITE(consumer_work_begin, consumer, WORK_BEGIN, none)
PIPESIM_SITE(consumer_work_end, consumer, WORK_END, none)
