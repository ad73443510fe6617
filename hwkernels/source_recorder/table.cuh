// Turns a table of roles, barriers and sites (PIPESIM_TABLE names its file, in quotes) into constants:
//
//   SITE_<name>      number of a site, in the table's order; SITES, how many there are
//   WARP_<role>      first warp of a role; WARPS_<role>, how many; WARPS, of all roles together
//   BARRIER_<name>   index of a group's first barrier; STAGES_<name>, how many; BARRIERS, of all groups together
//   COUNT_<name>     arrivals that complete a phase of a group's barriers
//   WAIT_SITES       bit mask of the sites of kind WAIT_ENTER and TRY, whose records say what is waited for
//   LAP_SITES        bit mask of the site of each role that ends a lap of its loop: the last, but no COPY, of which there may be
//                    several an iteration, unless the role has no other (description.py has the same rule)
#pragma once

#define PIPESIM_ROLE(name, warps)
#define PIPESIM_BARRIER(name, stages, count)
#define PIPESIM_SITE(name, role, kind, barrier) SITE_##name,
enum : unsigned {
#include PIPESIM_TABLE
    SITES
};
#undef PIPESIM_SITE
#define PIPESIM_SITE(name, role, kind, barrier)

#undef PIPESIM_ROLE
#define PIPESIM_ROLE(name, warps) WARP_##name, WARP_##name##_LAST = WARP_##name + (warps) - 1,
enum : unsigned {
#include PIPESIM_TABLE
    WARPS
};
#undef PIPESIM_ROLE
#define PIPESIM_ROLE(name, warps) WARPS_##name = (warps),
enum : unsigned {
#include PIPESIM_TABLE
};
#undef PIPESIM_ROLE
#define PIPESIM_ROLE(name, warps)

#undef PIPESIM_BARRIER
#define PIPESIM_BARRIER(name, stages, count) BARRIER_##name, BARRIER_##name##_LAST = BARRIER_##name + (stages) - 1,
enum : unsigned {
#include PIPESIM_TABLE
    BARRIERS
};
#undef PIPESIM_BARRIER
#define PIPESIM_BARRIER(name, stages, count) STAGES_##name = (stages), COUNT_##name = (count),
enum : unsigned {
#include PIPESIM_TABLE
};
#undef PIPESIM_BARRIER
#define PIPESIM_BARRIER(name, stages, count)

#undef PIPESIM_SITE
#define PIPESIM_SITE(name, role, kind, barrier) if (PipesimKind::kind <= PipesimKind::TRY) sites |= 1ull << SITE_##name;
enum class PipesimKind : unsigned {
    WAIT_ENTER, TRY, WAIT_RETURN, ARRIVE, EXPECT, COPY, WORK_BEGIN, WORK_END, CP_ASYNC_ARRIVE, BAR_ARRIVE, BAR_ENTER,
    BAR_RETURN, COMMIT, GROUP_COMMIT, GROUP_ENTER, GROUP_RETURN
};
constexpr __device__ unsigned long long pipesim_wait_sites() {
    unsigned long long sites = 0;
#include PIPESIM_TABLE
    return sites;
}
#undef PIPESIM_SITE
#define PIPESIM_SITE(name, role, kind, barrier) \
    if (PipesimKind::kind != PipesimKind::COPY || !last[WARP_##role]) last[WARP_##role] = SITE_##name + 1;
constexpr __device__ unsigned long long pipesim_lap_sites() {
    unsigned last[WARPS + 1] = {};
#include PIPESIM_TABLE
    unsigned long long sites = 0;
    for (unsigned warp = 0; warp < WARPS; ++warp)
        if (last[warp]) sites |= 1ull << (last[warp] - 1);
    return sites;
}
enum : unsigned long long { WAIT_SITES = pipesim_wait_sites(), LAP_SITES = pipesim_lap_sites() };

#undef PIPESIM_BARRIER
#undef PIPESIM_ROLE
#undef PIPESIM_SITE
