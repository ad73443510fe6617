// In place of the recorder: every record of a warp's first lane, in its order, on the machine.
#pragma once

#include "machine.h"

struct Agent {
    unsigned block, warp, stage, parity;
    bool records;
};

#define PIPESIM_KERNEL_PARAM
#define PIPESIM_AGENT(cta, agent, agents, records, shared) Agent pipesim = {(cta), (agent), 0, 0, (records)};
#define PIPESIM_PARAM , Agent &pipesim
#define PIPESIM_PASS , pipesim
#define PIPESIM_AT(iteration, stage_, parity_) pipesim.stage = (stage_), pipesim.parity = (parity_);
#define PIPESIM_SAY(iteration, stage_, parity_) PIPESIM_AT(iteration, stage_, parity_)
#define PIPESIM_RECORD(site, value) \
    if (pipesim.records)            \
        machine::m->records.push_back({pipesim.block, pipesim.warp, (site), pipesim.stage, pipesim.parity, (value)});
#define PIPESIM_ANCHOR(cta, which)
#define PIPESIM_FLUSH(cta, agent, agents, shared)
