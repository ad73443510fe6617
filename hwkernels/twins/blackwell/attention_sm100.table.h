// The one place that names the roles, barriers and recording sites of attention_sm100.cu with FUSED 1; with FUSED 0 that is
// attention_sm100_split.table.h.

// name, warps. Warps are numbered in this order; mma, load and idle are one warp group.
PIPESIM_ROLE(softmax0, 4)
PIPESIM_ROLE(softmax1, 4)
PIPESIM_ROLE(correction, 4)
PIPESIM_ROLE(mma, 1)
PIPESIM_ROLE(load, 1)
PIPESIM_ROLE(idle, 2)

// name, stages, expected count of arrivals: of S0_cons and S1_cons that of stage 0, the others take 128.
PIPESIM_BARRIER(S0_cons, PV_STAGES, 256)
PIPESIM_BARRIER(S1_cons, PV_STAGES, 256)
PIPESIM_BARRIER(C0_prod, 1, 128)
PIPESIM_BARRIER(C0_cons, 1, 128)
PIPESIM_BARRIER(C1_prod, 1, 128)
PIPESIM_BARRIER(C1_cons, 1, 128)
PIPESIM_BARRIER(S0_prod, 1, 1)
PIPESIM_BARRIER(S1_prod, 1, 1)
PIPESIM_BARRIER(Q1Sync, 1, 1)
PIPESIM_BARRIER(KV_prod, KV_STAGES, 1)
PIPESIM_BARRIER(KV_cons, KV_STAGES, 1)
PIPESIM_BARRIER(O_prod, 2, 1)

// name, role, kind, barrier. Each role's sites stand in program order; the return of a wait stands right behind it.
#include "attention_sm100_groups.table.h"
PIPESIM_SITE(mma_wait_KV, mma, WAIT_ENTER, KV_prod)
PIPESIM_SITE(mma_got_KV, mma, WAIT_RETURN, KV_prod)
PIPESIM_SITE(mma_wait_Q1, mma, WAIT_ENTER, Q1Sync)
PIPESIM_SITE(mma_got_Q1, mma, WAIT_RETURN, Q1Sync)
PIPESIM_SITE(mma_wait_S0, mma, WAIT_ENTER, S0_cons)
PIPESIM_SITE(mma_got_S0, mma, WAIT_RETURN, S0_cons)
PIPESIM_SITE(mma_wait_S1, mma, WAIT_ENTER, S1_cons)
PIPESIM_SITE(mma_got_S1, mma, WAIT_RETURN, S1_cons)
PIPESIM_SITE(load_expect_KV, load, EXPECT, KV_prod)
PIPESIM_SITE(load_copy_KV, load, COPY, KV_prod)
PIPESIM_SITE(load_expect_Q1, load, EXPECT, Q1Sync)
PIPESIM_SITE(load_copy_Q1, load, COPY, Q1Sync)
PIPESIM_SITE(load_wait_KV, load, WAIT_ENTER, KV_cons)
PIPESIM_SITE(load_got_KV, load, WAIT_RETURN, KV_cons)
