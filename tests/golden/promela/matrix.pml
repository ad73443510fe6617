/* matrix: every schedule of its flat program, for SPIN 6.
 * Parameters: tiles=2
 *
 *   spin -a FILE
 *   tcc -DSAFETY -o pan pan.c
 *   ./pan -m220
 *
 * errors: 0             no schedule fails
 * assertion violated    a rule is broken: the assertion names it
 * invalid end state     a deadlock
 *
 * spin -t -p FILE shows the schedule; ./pan -c0 continues to every fault. Any C compiler will do; tcc needs
 * a second where others need a minute. Without gcc say spin -Pcat, as there is nothing to preprocess.
 */

bool broken;  /* a rule is broken */
/* each is 1: the rules that assertions name; no part of the state */
hidden byte not_initialised = 1;
hidden byte invalidated = 1;
hidden byte reinitialised = 1;
hidden byte inval_pending = 1;
hidden byte over_arrival = 1;
hidden byte tx_range = 1;
hidden byte tx_edge = 1;
hidden byte stale_state = 1;
hidden byte race = 1;
hidden byte uninitialised_read = 1;
hidden byte wrong_item = 1;
/* barrier 0 is b[0] */
byte expected[1];
byte pending[1];
short tx[1];
short phase[1];
byte life[1];  /* 0 before the init, 1 in use, 2 after the inval */
hidden byte completed;
/* named barrier 0 is 0 of CTA 0 */
byte arrived[1];
byte agreed[1];
byte generation[1];
short cell[2] = -1;  /* the item in each cell of memory: -1 nothing, -2 being written */
byte flying[6];  /* whether a transfer, arrival or access is under way */
byte groups[1];  /* groups that an agent has closed on an engine */
hidden int held;

/* A rule is broken: nothing moves any more. With ./pan -c0 the other schedules are still followed. */
inline fault(rule) { if :: broken :: else -> broken = 1; assert(!rule) fi }

inline dead(b) { if :: life[b] == 2 -> fault(invalidated) :: else -> fault(not_initialised) fi }

inline init_barrier(b, n) {
  if
  :: life[b] == 1 -> fault(reinitialised)
  :: else -> expected[b] = n; pending[b] = n; tx[b] = 0; phase[b] = 0; life[b] = 1
  fi
}

inline inval_barrier(b) {
  if
  :: life[b] != 1 -> dead(b)
  :: else ->
     if
     :: pending[b] != expected[b] || tx[b] != 0 -> fault(inval_pending)
     :: else -> life[b] = 2
     fi
  fi
}

inline settle(b) {  /* any operation that leaves no arrival and no byte outstanding completes the phase */
  if
  :: pending[b] == 0 && tx[b] == 0 -> pending[b] = expected[b]; phase[b] = phase[b] + 1; completed = 1
  :: else -> completed = 0
  fi
}

inline arrive(b, n, e) {
  if
  :: life[b] != 1 -> dead(b)
  :: else ->
     tx[b] = tx[b] + e;
     if
     :: e > 1048575 || tx[b] < -1048575 || tx[b] > 1048576 -> fault(tx_range)
     :: else ->
        if
        :: n > pending[b] -> fault(over_arrival)
        :: else ->
           if
           :: tx[b] > 1048575 -> fault(tx_edge)
           :: else -> pending[b] = pending[b] - n; settle(b)
           fi
        fi
     fi
  fi
}

inline arrive_drop(b, n, e) {
  if
  :: life[b] != 1 -> dead(b)
  :: else ->
     if
     :: n > expected[b] -> fault(over_arrival)
     :: else -> expected[b] = expected[b] - n; arrive(b, n, e)
     fi
  fi
}

/* the phase of a state token against the barrier's: 0 the current one, 1 the one before */
inline check_state(b, token) {
  if
  :: life[b] != 1 -> dead(b)
  :: else ->
     if
     :: phase[b] - (token >> 20) < 0 || phase[b] - (token >> 20) > 1 -> fault(stale_state)
     :: else
     fi
  fi
}

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

/* role 0 */
active proctype a0_role_0() provided (!broken) {
  int r[1];
  /* 0 INIT barrier=0 count=2  ring.py:0 */
  d_step { init_barrier(0, 2) };
  /* 1 WRITE access=0 item=7  ring.py:1 */
  d_step { if :: flying[1] || flying[2] || flying[3] -> fault(race) :: else fi; flying[0] = 1 };
  d_step { flying[0] = 0; cell[0] = 7; cell[1] = 7 };
  /* 2 TRANSFER_READ engine=2 access=0 bytes=64 item=7  ring.py:2 */
  d_step { held = cell[0]; look(7); held = cell[1]; look(7); flying[1] = groups[0] + 1 };
  /* 3 COMMIT engine=2 barrier=-1  ring.py:3 */
  d_step { groups[0] = groups[0] + 1 };
  /* 4 TRANSFER_WRITE engine=2 access=0 bytes=64 item=8  ring.py:4 */
  d_step { cell[0] = -2; cell[1] = -2; flying[2] = groups[0] + 1 };
  /* 5 TRANSFER_WRITE engine=2 access=0 bytes=64 item=9  ring.py:5 */
  d_step { cell[0] = -2; cell[1] = -2; flying[3] = groups[0] + 1 };
  /* 6 COMMIT engine=2 barrier=0  ring.py:6 */
  d_step { flying[4] = 1 };
  /* 7 ARRIVE_DROP barrier=0 count=1 expect=0 register=0 semantics=0  ring.py:7 */
  d_step { r[0] = (phase[0] << 20) | pending[0]; arrive_drop(0, 1, 0) };
  /* 8 WAIT_STATE barrier=0 register=0 semantics=0  ring.py:8 */
  d_step { life[0] != 1 || phase[0] - (r[0] >> 20) != 0 -> check_state(0, r[0]) };
  /* 9 WAIT_GROUP engine=2 groups=0  ring.py:9 */
  d_step { (flying[1] == 0 || flying[1] > groups[0] - 0) && (flying[2] == 0 || flying[2] > groups[0] - 0) && (flying[3] == 0 || flying[3] > groups[0] - 0) -> skip };
  /* 10 READ access=1 item=9  ring.py:10 */
  d_step { if :: flying[2] || flying[3] -> fault(race) :: else fi; flying[5] = 1 };
  d_step { flying[5] = 0; held = cell[1]; look(9) };
  /* 11 INVAL barrier=0  ring.py:11 */
  d_step { inval_barrier(0) };
end:
  false
}

/* what is under way lands */
active proctype memory() provided (!broken) {
end:
  do
  /* role 0: operation 2 */
  :: d_step { flying[1] -> flying[1] = 0 }
  /* role 0: operation 4 */
  :: d_step { flying[2] && !(flying[1]) -> flying[2] = 0; if :: flying[3] :: else -> cell[0] = 8 fi; if :: flying[3] :: else -> cell[1] = 8 fi }
  /* role 0: operation 5 */
  :: d_step { flying[3] && !(flying[1] || flying[2]) -> flying[3] = 0; cell[0] = 9; cell[1] = 9 }
  /* role 0: operation 6 */
  :: d_step { flying[4] && !(flying[1] || flying[2] || flying[3]) -> flying[4] = 0; arrive(0, 1, 0) }
  od
}

/* keeps a schedule that broke a rule from being called a deadlock as well */
active proctype watch() { end: do :: broken od }
