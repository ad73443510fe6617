// Positional records (PIPESIM_ENCODING 2): the place of a stamp in the agent's stream says what it is of. A part of
// recorder.cuh.
//
// A stream is 32-bit words: a clock for each record, and the running hash of all sites so far, that one included, right
// before the clock of each site that ends a lap, and after the last clock. Each word is stored with the next, so
// that no instruction waits for a clock. In straight code the compiler makes one multiplication of a lap's hash, and
// of its addresses constants: a record is a clock and a store.
#pragma once

// WAIT_SITES and LAP_SITES are those of table.cuh, which has the masks of the table's sites.
#define PIPESIM_IS(sites, site) (((sites) >> (site)) & 1)
#define PIPESIM_AT(iteration, stage, parity) \
    pipesim_at(pipesim); \
    PIPESIM_SAY(iteration, stage, parity)
#define PIPESIM_SAY(iteration, stage, parity) pipesim.at = (2u * (stage) + (parity)) * PIPESIM_FIRST_BLOCK;
#define PIPESIM_RECORD(site, value) \
    pipesim_record<true>(pipesim, (site), PIPESIM_IS(WAIT_SITES, (site)), PIPESIM_IS(LAP_SITES, (site)));
#define PIPESIM_RECORD_AGAIN(site, value) \
    pipesim_record<false>(pipesim, (site), PIPESIM_IS(WAIT_SITES, (site)), PIPESIM_IS(LAP_SITES, (site)));
#define PIPESIM_RECORD_IF(condition, site, value)                                                                        \
    {                                                                                                                    \
        static_assert(!PIPESIM_IS(LAP_SITES, (site)), "a role's last site is recorded without a condition");              \
        pipesim_record_if(pipesim, (condition), (site), PIPESIM_IS(WAIT_SITES, (site)));                                  \
    }
#define PIPESIM_ANSWER(value)

struct PipesimAgent {
    PipesimAddress pointer;  // of the next word but one: the last is not stored yet
    PipesimAddress kept;     // behind the last word of an agent that has ended, else 0
    PipesimAddress limit;    // from where an iteration's words might not fit
    unsigned last;           // word
    unsigned hash, at;       // of the sites up to here; of the next wait: its stage and parity, in their place of a block
    unsigned records, live;  // whether this lane records, and whether it has not stopped: as a bool it would be widened each time
};

// No "memory": nothing reads it before the flush, and that reads with assembly that says so.
static __device__ __forceinline__ void pipesim_store_word(PipesimAddress to, unsigned word) {
    asm volatile(PIPESIM_STORE ".b32 [%0], %1;" ::PIPESIM_REGISTER(to), "r"(word));
}

// A copy in a register of its own. Else, at the end of a branch in which a clock was read, the new clock would be copied to
// the register of the old one, and that waits for it.
static __device__ __forceinline__ unsigned pipesim_copy(unsigned word) {
    unsigned copy;
    asm volatile("mov.u32 %0, %1;" : "=r"(copy) : "r"(word));
    return copy;
}

// Stores the last word, and makes this one the last.
static __device__ __forceinline__ void pipesim_push(PipesimAgent &agent, unsigned last, unsigned word) {
    if (agent.live) pipesim_store_word(agent.pointer - PIPESIM_RECORD_BYTES, last);
    agent.last = word;
    agent.pointer += PIPESIM_RECORD_BYTES;
}

static __device__ __forceinline__ unsigned pipesim_hashed(const PipesimAgent &agent, unsigned site, bool waits) {
    return agent.hash * PIPESIM_HASH_FACTOR + (waits ? agent.at + (PIPESIM_FIRST_BLOCK + site + 1) : site + 1);
}

// The clock is read under a condition that differs between lanes: else the compiler reads it into a uniform register, and
// what follows waits for it. READS: else the last record's clock is this one's, too.
template <bool READS>
static __device__ __forceinline__ void pipesim_record(PipesimAgent &agent, unsigned site, bool waits, bool ends_lap) {
    agent.hash = pipesim_hashed(agent, site, waits);
    const unsigned last = pipesim_copy(agent.last);
    unsigned now = READS ? pipesim_anything() : last, timer;
    if (READS && agent.live) pipesim_read(now, timer);
    if (ends_lap) {  // after the reading, so that the last clock has had its time
        pipesim_push(agent, last, agent.hash);
        pipesim_push(agent, agent.hash, now);
    } else {
        pipesim_push(agent, last, now);
    }
}

// Where the condition does not hold, the last word is stored anyway, and stays the last.
static __device__ __forceinline__ void pipesim_record_if(PipesimAgent &agent, bool condition, unsigned site, bool waits) {
    const unsigned hash = pipesim_hashed(agent, site, waits);
    const unsigned last = pipesim_copy(agent.last);
    unsigned timer;
    if (agent.live && condition) pipesim_read(agent.last, timer);
    if (agent.live) pipesim_store_word(agent.pointer - PIPESIM_RECORD_BYTES, last);
    agent.pointer += condition ? PIPESIM_RECORD_BYTES : 0;
    agent.hash = condition ? hash : agent.hash;
}

// The head of an iteration.
static __device__ __forceinline__ void pipesim_at(PipesimAgent &agent) {
#if PIPESIM_CHECKED
    if (agent.pointer > agent.limit) agent.pointer = agent.limit;  // the host finds another hash than it expects
#endif
}

// After the agent's last record: what follows is not recorded.
static __device__ __forceinline__ void pipesim_end(PipesimAgent &agent) {
    if (agent.kept) return;
    pipesim_push(agent, agent.last, agent.hash);
    pipesim_push(agent, agent.hash, 0);
    agent.kept = agent.pointer - PIPESIM_RECORD_BYTES;
}

// What is recorded after it lies behind the words that are kept. There is room: the buffer holds all that the agent would have
// recorded, and the two words that end it are not stored again. So `live` is the same all the time, and no record waits for it.
static __device__ __forceinline__ void pipesim_stop(PipesimAgent &agent) { pipesim_end(agent); }

// Iterations of the window that did not fit: there are none, or the host finds another hash.
static __device__ __forceinline__ unsigned pipesim_lost(const PipesimAgent &) { return 0; }

static __device__ __forceinline__ PipesimAgent pipesim_agent(const PipesimLaunch &launch, unsigned cta, unsigned index,
                                                             unsigned agents, bool records, unsigned shared) {
    PipesimAgent agent;
    const PipesimAddress begin = pipesim_begin(launch, cta, index, agents, shared);
    agent.pointer = begin + PIPESIM_RECORD_BYTES;
    agent.limit = begin + (launch.capacity - PIPESIM_ROOM - 1) * PIPESIM_RECORD_BYTES;
    agent.kept = 0;
    agent.last = agent.hash = agent.at = 0;
    agent.records = agent.live = records && pipesim_sound(launch, index, agents);
    return agent;
}
