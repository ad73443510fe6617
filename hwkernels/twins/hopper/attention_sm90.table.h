// Made by tools/tables.py from the protocol attention_sm90: do not edit. table.cuh makes enums of it for the
// kernel, table.py parses it for the host. No include guard: it is included once for each kind of entry.

// name, warps. Warps are numbered in this order.
PIPESIM_ROLE(producer, 4)
PIPESIM_ROLE(consumer, 4 * NUM_CONSUMER)

// name, stages, arrivals that complete a phase. Barriers lie in shared memory in this order.
PIPESIM_BARRIER(q_full, 1, 1)
PIPESIM_BARRIER(k_full, QK_STAGES * STAGES, 1)
PIPESIM_BARRIER(k_empty, QK_STAGES * STAGES, 4 * NUM_CONSUMER)
PIPESIM_BARRIER(v_full, STAGES, 1)
PIPESIM_BARRIER(v_empty, STAGES, 4 * NUM_CONSUMER)

// name, role, kind, barrier (none where it touches none). Each role's sites stand in program order.
PIPESIM_SITE(producer_expect_q_full, producer, EXPECT, q_full)
PIPESIM_SITE(producer_copy_q_full, producer, COPY, q_full)
PIPESIM_SITE(producer_wait_k_empty, producer, WAIT_ENTER, k_empty)
PIPESIM_SITE(producer_got_k_empty, producer, WAIT_RETURN, k_empty)
PIPESIM_SITE(producer_expect_k_full, producer, EXPECT, k_full)
PIPESIM_SITE(producer_copy_k_full, producer, COPY, k_full)
PIPESIM_SITE(producer_wait_v_empty, producer, WAIT_ENTER, v_empty)
PIPESIM_SITE(producer_got_v_empty, producer, WAIT_RETURN, v_empty)
PIPESIM_SITE(producer_expect_v_full, producer, EXPECT, v_full)
PIPESIM_SITE(producer_copy_v_full, producer, COPY, v_full)
PIPESIM_SITE(consumer_wait_q_full, consumer, WAIT_ENTER, q_full)
PIPESIM_SITE(consumer_got_q_full, consumer, WAIT_RETURN, q_full)
PIPESIM_SITE(consumer_wait_k_full, consumer, WAIT_ENTER, k_full)
PIPESIM_SITE(consumer_got_k_full, consumer, WAIT_RETURN, k_full)
PIPESIM_SITE(consumer_arrive_k_empty, consumer, ARRIVE, k_empty)
PIPESIM_SITE(consumer_work_begin, consumer, WORK_BEGIN, none)
PIPESIM_SITE(consumer_work_end, consumer, WORK_END, none)
PIPESIM_SITE(consumer_wait_v_full, consumer, WAIT_ENTER, v_full)
PIPESIM_SITE(consumer_got_v_full, consumer, WAIT_RETURN, v_full)
PIPESIM_SITE(consumer_arrive_v_empty, consumer, ARRIVE, v_empty)
