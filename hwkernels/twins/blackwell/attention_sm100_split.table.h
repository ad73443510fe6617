// The one place that names the roles, barriers and recording sites of attention_sm100.cu with FUSED 0: K and V have a ring
// each. With FUSED 1 that is attention_sm100.table.h.

// name, warps. Warps are numbered in this order; mma, load and idle are one warp group.
PIPESIM_ROLE(softmax0, 4)
PIPESIM_ROLE(softmax1, 4)
PIPESIM_ROLE(correction, 4)
PIPESIM_ROLE(mma, 1)
PIPESIM_ROLE(load, 1)
PIPESIM_ROLE(idle, 2)

// name, stages, expected count of arrivals: of S0_cons and S1_cons that of stage 0, the others take 128. Slice q of slot s
// of K is stage QK_STAGES * s + q.
PIPESIM_BARRIER(S0_cons, PV_STAGES, 256)
PIPESIM_BARRIER(S1_cons, PV_STAGES, 256)
PIPESIM_BARRIER(C0_prod, 1, 128)
PIPESIM_BARRIER(C0_cons, 1, 128)
PIPESIM_BARRIER(C1_prod, 1, 128)
PIPESIM_BARRIER(C1_cons, 1, 128)
PIPESIM_BARRIER(S0_prod, 1, 1)
PIPESIM_BARRIER(S1_prod, 1, 1)
PIPESIM_BARRIER(Q1Sync, QK_STAGES, 1)
PIPESIM_BARRIER(K_prod, QK_STAGES * KV_STAGES, 1)
PIPESIM_BARRIER(K_cons, QK_STAGES * KV_STAGES, 1)
PIPESIM_BARRIER(V_prod, KV_STAGES, 1)
PIPESIM_BARRIER(V_cons, KV_STAGES, 1)
PIPESIM_BARRIER(O_prod, 2, 1)

// name, role, kind, barrier. Each role's sites stand in program order; the return of a wait stands right behind it.
#include "attention_sm100_groups.table.h"
PIPESIM_SITE(mma_wait_K, mma, WAIT_ENTER, K_prod)
PIPESIM_SITE(mma_got_K, mma, WAIT_RETURN, K_prod)
PIPESIM_SITE(mma_wait_Q1, mma, WAIT_ENTER, Q1Sync)
PIPESIM_SITE(mma_got_Q1, mma, WAIT_RETURN, Q1Sync)
PIPESIM_SITE(mma_wait_V, mma, WAIT_ENTER, V_prod)
PIPESIM_SITE(mma_got_V, mma, WAIT_RETURN, V_prod)
PIPESIM_SITE(mma_wait_S0, mma, WAIT_ENTER, S0_cons)
PIPESIM_SITE(mma_got_S0, mma, WAIT_RETURN, S0_cons)
PIPESIM_SITE(mma_wait_S1, mma, WAIT_ENTER, S1_cons)
PIPESIM_SITE(mma_got_S1, mma, WAIT_RETURN, S1_cons)
PIPESIM_SITE(load_expect_K, load, EXPECT, K_prod)
PIPESIM_SITE(load_copy_K, load, COPY, K_prod)
PIPESIM_SITE(load_expect_Q1, load, EXPECT, Q1Sync)
PIPESIM_SITE(load_copy_Q1, load, COPY, Q1Sync)
PIPESIM_SITE(load_wait_V, load, WAIT_ENTER, V_cons)
PIPESIM_SITE(load_got_V, load, WAIT_RETURN, V_cons)
PIPESIM_SITE(load_expect_V, load, EXPECT, V_prod)
PIPESIM_SITE(load_copy_V, load, COPY, V_prod)
PIPESIM_SITE(load_wait_K, load, WAIT_ENTER, K_cons)
PIPESIM_SITE(load_got_K, load, WAIT_RETURN, K_cons)
