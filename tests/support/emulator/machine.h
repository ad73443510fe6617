// A machine that runs a CUDA kernel of a few CTAs on the CPU, for kernels that no GPU at hand can run. Every thread is a fiber;
// copies, products and requests happen later, in an order that a seed chooses. It knows values, barriers and their faults; of
// memory order it knows nothing.
#pragma once

#include <setjmp.h>
#include <ucontext.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace machine {

constexpr unsigned SHARED_BYTES = 233472, SHARED_AT = 1024, LANES = 128, COLUMNS = 512, STACK = 1 << 16;
constexpr unsigned ROUND_NS = 10, IDLE_NS = 10000, LONGEST_NS = 100000000;  // time of a round, of one that moves nothing, of a run

struct Barrier {
    long expected, pending, tx;
    unsigned done;
};

struct Joint {  // the arrivals of a warp that one instruction makes
    unsigned round = 0, lanes = 0, done = 0;
};

struct Meeting {  // of a warp or at a named barrier
    unsigned arrived = 0, met = 0;
    bool all = true, result = true;
};

struct Products {  // of a warp on Hopper: wgmma
    std::array<float *, 32> sums;
    std::array<const unsigned *, 32> left;  // of the lanes that issue the next one
    std::vector<std::function<void()>> open;
    std::deque<std::vector<std::function<void()>>> groups;  // committed
};

struct Block {
    unsigned index;
    std::vector<uint8_t> shared = std::vector<uint8_t>(SHARED_BYTES);
    std::vector<uint32_t> tmem = std::vector<uint32_t>(LANES * COLUMNS);
    std::map<unsigned, Barrier> barriers;
    std::map<unsigned, Meeting> named, warps, warp_groups;
    std::map<unsigned, std::array<uint32_t, 32>> exchanged;  // by warp
    std::map<unsigned, Products> products;                   // by warp
    std::map<std::pair<unsigned, unsigned>, Joint> joint;  // by warp and barrier
    std::deque<std::function<void()>> tensor_pipe;  // products and commits, in the order of their issue
    unsigned allocated = 0, ended = 0, spare_registers = 0;
    bool refused = false;  // a request has found no tile
};

struct Group {  // of bulk stores: how many copies have not read, or are not done
    unsigned unread = 0;
};

struct Fiber {
    ucontext_t context;  // where it begins
    jmp_buf here;        // where it goes on
    bool begun = false;
    std::unique_ptr<char[]> stack = std::make_unique<char[]>(STACK);
    Block *block;
    unsigned thread;
    bool done = false;
    std::vector<std::shared_ptr<Group>> groups = {std::make_shared<Group>()};  // the last is open
};

struct Record {
    unsigned block, warp, site, stage, parity, value;
};

struct Machine {
    unsigned threads, grid, next, time = 0, twin = 0, round = 0;
    unsigned stop = 0;  // the kernel's flag: a wait has given up
    unsigned delay = 0;  // rounds that a copy takes at least
    uint64_t state;
    std::function<void()> kernel;
    std::deque<Block> blocks;
    std::deque<Fiber> fibers;
    std::vector<std::pair<unsigned, std::function<void()>>> later;  // rounds from now at least
    std::vector<Record> records;
    jmp_buf loop;
    Fiber *now = nullptr;
    std::string fault;
    bool moved = false;
    unsigned random(unsigned below) {  // xorshift
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        return (state >> 11) % below;
    }
};

inline Machine *m = nullptr;

// Not swapcontext, which asks the kernel for the mask of signals every time.
inline void yield() {
    if (_setjmp(m->now->here) == 0) _longjmp(m->loop, 1);
}

// The fiber as far as it goes. A function of its own: what its caller has in registers is safe from the jump.
[[gnu::noinline]] inline void resume(Fiber &fiber) {
    if (_setjmp(m->loop) != 0) return;
    m->now = &fiber;
    if (fiber.begun) _longjmp(fiber.here, 1);
    fiber.begun = true;
    setcontext(&fiber.context);
}

// A fault ends the run: this fiber never returns.
[[noreturn]] inline void fail(const std::string &what) {
    if (m->fault.empty()) {
        m->fault = what;
        if (m->now != nullptr)
            m->fault += " (CTA " + std::to_string(m->now->block->index) + ", thread " + std::to_string(m->now->thread) + ")";
    }
    if (m->now == nullptr) throw std::runtime_error(m->fault);
    for (;;) yield();
}

template <class Ready>
void until(Ready ready) {
    while (!ready()) yield();
}

inline Block &block() { return *m->now->block; }
// Most in a few rounds, some much later.
inline void soon(std::function<void()> what) {
    m->later.emplace_back(m->delay + m->random(m->random(4) ? 4 : 64), std::move(what));
}

// All `count` threads, each of which says something; whether all said yes.
inline bool meet(Meeting &meeting, unsigned count, bool yes) {
    meeting.all &= yes;
    const unsigned turn = meeting.met;
    if (++meeting.arrived == count) {
        meeting.result = meeting.all;
        meeting.arrived = 0;
        meeting.all = true;
        ++meeting.met;
    } else {
        until([&] { return meeting.met != turn; });
    }
    return meeting.result;
}

inline Barrier &barrier_at(Block &block, unsigned address) {
    const auto found = block.barriers.find(address);
    if (found == block.barriers.end()) fail("no barrier at " + std::to_string(address));
    return found->second;
}

// Arrivals and bytes that are expected (positive) or have come (negative).
inline void signal(Block &block, unsigned address, long arrivals, long bytes) {
    Barrier &barrier = barrier_at(block, address);
    if (arrivals > barrier.pending) fail("an arrival too many at barrier " + std::to_string(address));
    barrier.pending -= arrivals;
    barrier.tx += bytes;
    m->moved = true;
    if (barrier.pending == 0 && barrier.tx == 0) {
        barrier.pending = barrier.expected;
        ++barrier.done;
    }
}

// One arrival of this thread. Lanes that arrive together are one arrival of so many, which no phase may end in the middle of.
inline void arrive(unsigned address) {
    Block &own = block();
    Joint &joint = own.joint[{m->now->thread / 32, address}];
    const unsigned lane = 1u << m->now->thread % 32, done = barrier_at(own, address).done;
    if (joint.round != m->round || (joint.lanes & lane)) joint = {m->round, 0, done};
    if (joint.done != done) fail("an arrival too many at barrier " + std::to_string(address));
    joint.lanes |= lane;
    signal(own, address, 1, 0);
}

inline uint8_t *shared(Block &block, unsigned address, unsigned bytes) {
    if (address < SHARED_AT || address + bytes > SHARED_AT + SHARED_BYTES) fail("outside of shared memory");
    return block.shared.data() + (address - SHARED_AT);
}

// The oldest group of a warp's products.
inline void run_group(Products &of_warp) {
    const std::vector<std::function<void()>> group = std::move(of_warp.groups.front());
    of_warp.groups.pop_front();
    m->moved = true;
    for (const std::function<void()> &product : group) product();
}

inline void enter() {
    m->kernel();
    m->now->done = true;
    ++m->now->block->ended;
    m->moved = true;
    for (;;) yield();
}

inline void start(unsigned index) {
    Block &block = m->blocks.emplace_back();
    block.index = index;
    for (unsigned t = 0; t < m->threads; ++t) {
        Fiber &fiber = m->fibers.emplace_back();
        fiber.block = &block;
        fiber.thread = t;
        getcontext(&fiber.context);
        fiber.context.uc_stack.ss_sp = fiber.stack.get();
        fiber.context.uc_stack.ss_size = STACK;
        makecontext(&fiber.context, enter, 0);
    }
}

inline void run_later() {
    m->now = nullptr;
    std::vector<std::pair<unsigned, std::function<void()>>> waiting;
    waiting.swap(m->later);
    for (auto &[rounds, what] : waiting) {
        if (rounds == 0) {
            m->moved = true;
            what();
        } else {
            m->later.emplace_back(rounds - 1, std::move(what));
        }
    }
    for (Block &block : m->blocks) {
        while (!block.tensor_pipe.empty() && m->random(2)) {
            m->moved = true;
            const std::function<void()> what = std::move(block.tensor_pipe.front());
            block.tensor_pipe.pop_front();
            what();
        }
        for (auto &[warp, products] : block.products)
            while (!products.groups.empty() && m->random(16) == 0) run_group(products);
    }
}

// Runs `kernel` in `together` CTAs of a grid at a time until all threads have ended. What went wrong, or "".
inline std::string run(Machine &machine, unsigned together) {
    m = &machine;
    machine.next = 0;
    for (; machine.next < together && machine.next < machine.grid; ++machine.next) start(machine.next);
    std::vector<unsigned> warps(machine.fibers.size() / 32);
    for (unsigned w = 0; w < warps.size(); ++w) warps[w] = w;
    try {
        for (bool alive = true; alive && machine.fault.empty();) {
            alive = machine.moved = false;
            ++machine.round;
            for (unsigned w = warps.size(); w > 1; --w) std::swap(warps[w - 1], warps[machine.random(w)]);
            for (const unsigned w : warps) {
                const bool late = machine.random(4) == 0;
                for (unsigned lane = 0; lane < 32; ++lane) {
                    Fiber &fiber = machine.fibers[32 * w + lane];
                    if (fiber.done) continue;
                    alive = true;
                    if (late) continue;
                    resume(fiber);
                }
            }
            run_later();
            machine.time += machine.moved || !machine.later.empty() ? ROUND_NS : IDLE_NS;
            if (machine.time > LONGEST_NS) fail("it does not end");
        }
        if (machine.fault.empty() && !machine.later.empty()) fail("a copy outlives the kernel");
        for (const Block &block : machine.blocks) {
            if (machine.fault.empty() && (block.allocated || !block.tensor_pipe.empty())) fail("tensor memory is left");
            for (const auto &[warp, products] : block.products)
                if (machine.fault.empty() && !(products.open.empty() && products.groups.empty())) fail("a product is left");
        }
    } catch (const std::runtime_error &) {
    }
    return machine.fault;
}

}  // namespace machine
