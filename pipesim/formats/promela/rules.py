"""The rules of the machine that every model needs, in Promela: mbarriers, named barriers, the cluster barrier, reading.

They are ``model/barrier.py`` and ``model/rules_*.py`` once more, deliberately by hand: SPIN must not share the
code that it checks. What depends on the operands is decided in Python (``operations``), what depends on the state,
here.
"""

import re

from pipesim.findings.catalog import NO_MOVE_SHOWS
from pipesim.model.barrier import ABSENT, COUNT_BITS, INVALID, LIVE, MAX_COUNT
from pipesim.model.finding import FaultKind
from pipesim.model.state import TORN, UNINITIALISED

#: The assertions: one name for each kind of fault. SPIN has one memory, and looks at one schedule at a time.
KINDS = {kind: kind.name.lower() for kind in FaultKind if kind not in NO_MOVE_SHOWS}

assert (ABSENT, LIVE, INVALID, UNINITIALISED, TORN) == (0, 1, 2, -1, -2)

_FAULT = """\
/* A rule is broken: nothing moves any more. With ./pan -c0 the other schedules are still followed. */
inline fault(rule) { if :: broken :: else -> broken = 1; assert(!rule) fi }
"""

_BARRIER = f"""\
inline dead(b) {{ if :: life[b] == 2 -> fault(invalidated) :: else -> fault(not_initialised) fi }}

inline init_barrier(b, n) {{
  if
  :: life[b] == 1 -> fault(reinitialised)
  :: else -> expected[b] = n; pending[b] = n; tx[b] = 0; phase[b] = 0; life[b] = 1
  fi
}}

inline inval_barrier(b) {{
  if
  :: life[b] != 1 -> dead(b)
  :: else ->
     if
     :: pending[b] != expected[b] || tx[b] != 0 -> fault(inval_pending)
     :: else -> life[b] = 2
     fi
  fi
}}

inline settle(b) {{  /* any operation that leaves no arrival and no byte outstanding completes the phase */
  if
  :: pending[b] == 0 && tx[b] == 0 -> pending[b] = expected[b]; phase[b] = @NEXT@; completed = 1
  :: else -> completed = 0
  fi
}}

inline arrive(b, n, e) {{
  if
  :: life[b] != 1 -> dead(b)
  :: else ->
     tx[b] = tx[b] + e;
     if
     :: e > {MAX_COUNT} || tx[b] < -{MAX_COUNT} || tx[b] > {MAX_COUNT + 1} -> fault(tx_range)
     :: else ->
        if
        :: n > pending[b] -> fault(over_arrival)
        :: else ->
           if
           :: tx[b] > {MAX_COUNT} -> fault(tx_edge)
           :: else -> pending[b] = pending[b] - n; settle(b)
           fi
        fi
     fi
  fi
}}

inline arrive_drop(b, n, e) {{
  if
  :: life[b] != 1 -> dead(b)
  :: else ->
     if
     :: n > expected[b] -> fault(over_arrival)
     :: else -> expected[b] = expected[b] - n; arrive(b, n, e)
     fi
  fi
}}

inline arrive_no_complete(b, n) {{
  completed = 0;
  arrive(b, n, 0);
  if
  :: completed -> fault(no_complete)
  :: else
  fi
}}

inline arrive_wrongly(b) {{ if :: life[b] != 1 -> dead(b) :: else -> fault(arrive_count) fi }}

inline add_tx(b, n) {{
  if
  :: life[b] != 1 -> dead(b)
  :: else ->
     tx[b] = tx[b] + (n);
     if
     :: (n) > {MAX_COUNT} || tx[b] < -{MAX_COUNT} || tx[b] > {MAX_COUNT + 1} -> fault(tx_range)
     :: else ->
        if
        :: tx[b] == {MAX_COUNT + 1} -> fault(tx_edge)
        :: else -> settle(b)
        fi
     fi
  fi
}}

inline raise_pending(b, n) {{
  if
  :: life[b] != 1 -> dead(b)
  :: else ->
     if
     :: pending[b] + n > {MAX_COUNT} -> fault(arrive_count)
     :: else -> pending[b] = pending[b] + n
     fi
  fi
}}
"""

_STATE = f"""\
/* the phase of a state token against the barrier's: 0 the current one, 1 the one before */
inline check_state(b, token) {{
  if
  :: life[b] != 1 -> dead(b)
  :: else ->
     if
     :: phase[b] - (token >> {COUNT_BITS}) < 0 || phase[b] - (token >> {COUNT_BITS}) > 1 -> fault(stale_state)
     :: else
     fi
  fi
}}
"""

_NAMED = """\
/* named barriers: threads that have arrived, threads that were agreed (0: none yet), times it was full */
inline bar_join(n, threads, lanes) {
  if
  :: agreed[n] != 0 && agreed[n] != threads -> fault(barrier_threads)
  :: else ->
     if
     :: arrived[n] + lanes > threads -> fault(barrier_overrun)
     :: else ->
        if
        :: arrived[n] + lanes == threads -> arrived[n] = 0; agreed[n] = 0; generation[n] = generation[n] + 1
        :: else -> arrived[n] = arrived[n] + lanes; agreed[n] = threads
        fi
     fi
  fi
}
"""

_CLUSTER = """\
/* the cluster barrier: joined is 0, or 1 more than the generation that this agent arrived in */
inline cluster_join(agents) {
  if
  :: joined -> fault(cluster_arrive)
  :: else ->
     joined = cluster_generation + 1;
     cluster_arrived = cluster_arrived + 1;
     if
     :: cluster_arrived == agents -> cluster_arrived = 0; cluster_generation = cluster_generation + 1
     :: else
     fi
  fi
}
"""

_CLUSTER_WITHOUT_THE_ENDED = """\
/* the cluster barrier where agents may end before others arrive: cluster_ended have, of which cluster_gone have not
   arrived in this generation. They are not waited for */
inline cluster_go_on(agents) {
  if
  :: cluster_arrived && cluster_arrived + cluster_gone == agents ->
     cluster_arrived = 0; cluster_gone = cluster_ended; cluster_generation = cluster_generation + 1
  :: else
  fi
}

inline cluster_join_or_ended(agents) {
  if
  :: joined -> fault(cluster_arrive)
  :: else ->
     joined = cluster_generation + 1;
     cluster_arrived = cluster_arrived + 1;
     cluster_go_on(agents)
  fi
}

inline cluster_leave(agents) {
  cluster_ended = cluster_ended + 1;
  if
  :: joined == cluster_generation + 1
  :: else -> cluster_gone = cluster_gone + 1; cluster_go_on(agents)
  fi;
  joined = 0
}
"""

_LOOK = """\
/* reading: held is the item found (-1 nothing, -2 being written), item the one believed, -1 for any */
inline look(item) {
  if
  :: held == item && held >= 0
  :: else ->
     if
     :: held == -2 -> fault(race)
     :: else ->
        if
        :: held == -1 -> fault(uninitialised_read)
        :: else -> if :: item >= 0 -> fault(wrong_item) :: else fi
        fi
     fi
  fi
}
"""

_LOOK_UNLESS_EMPTY = """\
/* the same of tensor memory, where nothing (-1) may be found */
inline look_unless_empty(item) {
  if
  :: held == -1 -> skip
  :: else -> look(item)
  fi
}
"""


_CALL = re.compile(r"(\w+)\(")
_RULES = "\n".join([_FAULT, _BARRIER, _STATE, _NAMED, _CLUSTER, _CLUSTER_WITHOUT_THE_ENDED, _LOOK, _LOOK_UNLESS_EMPTY])


def rules(used_by: str, *, tokens: bool) -> str:
    """The rules that this text uses, and those that they use. With state tokens a barrier counts its phases."""
    every = _RULES.replace("@NEXT@", "phase[b] + 1" if tokens else "1 - phase[b]")
    blocks = {re.findall(r"inline (\w+)", block)[0]: block for block in every.split("\n\n")}
    wanted, texts = set[str](), [used_by]
    while texts:
        called = _CALL.findall(texts.pop())
        texts += [blocks[name] for name in dict.fromkeys(called) if name in blocks and name not in wanted]
        wanted.update(called)
    return "\n\n".join(block.strip("\n") for name, block in blocks.items() if name in wanted) + "\n"


def broken_by(text: str) -> list[str]:
    """The kinds of fault that a text names."""
    said = set(re.findall(r"fault\((\w+)\)", text))
    return [name for name in KINDS.values() if name in said]
