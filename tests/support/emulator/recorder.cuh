// In place of the recorder: every record of a warp's first lane, in its order, on the machine.
#pragma once

#include "machine.h"

struct Agent {
    unsigned block, warp, stage, parity;
    bool records;
    size_t last;  // its last record
};

#define PIPESIM_KERNEL_PARAM
#define PIPESIM_AGENT(cta, agent, agents, records, shared) Agent pipesim = {(cta), (agent), 0, 0, (records)};
#define PIPESIM_PARAM , Agent &pipesim
#define PIPESIM_PASS , pipesim
#define PIPESIM_AT(iteration, stage_, parity_) pipesim.stage = (stage_), pipesim.parity = (parity_);
#define PIPESIM_SAY(iteration, stage_, parity_) PIPESIM_AT(iteration, stage_, parity_)
#define PIPESIM_RECORD(site, value)            \
    if (pipesim.records) {                     \
        auto &records = machine::m->records;   \
        pipesim.last = records.size();         \
        records.push_back({pipesim.block, pipesim.warp, (site), pipesim.stage, pipesim.parity, (value)}); \
    }
#define PIPESIM_RECORD_AGAIN(site, value) PIPESIM_RECORD(site, value)
#define PIPESIM_RECORD_IF(condition, site, value) \
    if (condition) { PIPESIM_RECORD(site, value) }
#define PIPESIM_STOP pipesim.records = false;
#define PIPESIM_ANSWER(answer) \
    if (pipesim.records) machine::m->records[pipesim.last].value = (answer);
#define PIPESIM_ANCHOR(cta, which)
#define PIPESIM_FLUSH(cta, agent, agents, shared)
