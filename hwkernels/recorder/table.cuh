// Turns a table of roles, barriers and sites (PIPESIM_TABLE names its file, in quotes) into constants:
//
//   SITE_<name>      number of a site, in the table's order; SITES, how many there are
//   WARP_<role>      first warp of a role; WARPS_<role>, how many; WARPS, of all roles together
//   BARRIER_<name>   index of a group's first barrier; STAGES_<name>, how many; BARRIERS, of all groups together
//   COUNT_<name>     arrivals that complete a phase of a group's barriers
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
#undef PIPESIM_ROLE
#undef PIPESIM_SITE
