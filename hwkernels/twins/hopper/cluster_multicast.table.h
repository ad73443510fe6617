// The one place that names the roles, barriers and recording sites of cluster_multicast.cu; see
// producer_consumer.table.h for how it is read. All CTAs of a cluster have the same.

PIPESIM_ROLE(producer, 1)
PIPESIM_ROLE(consumer, CONSUMER_WARPS)

PIPESIM_BARRIER(full, STAGES, 1)
PIPESIM_BARRIER(empty, STAGES, CONSUMER_WARPS * CLUSTER)

PIPESIM_SITE(producer_wait_empty, producer, WAIT_ENTER, empty)
PIPESIM_SITE(producer_got_empty, producer, WAIT_RETURN, empty)
PIPESIM_SITE(producer_expect_full, producer, EXPECT, full)
PIPESIM_SITE(producer_copy_full, producer, COPY, full)
PIPESIM_SITE(consumer_wait_full, consumer, WAIT_ENTER, full)
PIPESIM_SITE(consumer_got_full, consumer, WAIT_RETURN, full)
PIPESIM_SITE(consumer_work_begin, consumer, WORK_BEGIN, none)
PIPESIM_SITE(consumer_work_end, consumer, WORK_END, none)
PIPESIM_SITE(consumer_arrive_empty, consumer, ARRIVE, empty)
