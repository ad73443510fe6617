/* ring: every schedule of its flat program, for SPIN 6.
 * Parameters: tiles=2
 *
 *   spin -a FILE
 *   tcc -DSAFETY -o pan pan.c
 *   ./pan -m260
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
hidden byte over_arrival = 1;
hidden byte tx_range = 1;
hidden byte tx_edge = 1;
hidden byte barrier_threads = 1;
hidden byte barrier_overrun = 1;
hidden byte race = 1;
hidden byte uninitialised_read = 1;
hidden byte wrong_item = 1;
/* barrier 0 is b[0] */
/* barrier 1 is b[1] */
byte expected[2];
byte pending[2];
short tx[2];
bit phase[2];
byte life[2];  /* 0 before the init, 1 in use, 2 after the inval */
hidden byte completed;
/* named barrier 0 is 0 of CTA 0 */
byte arrived[1];
byte agreed[1];
byte generation[1];
short cell[2] = -1;  /* the item in each cell of memory: -1 nothing, -2 being written */
byte left[1];  /* of a copy under way: the bytes to come, plus 1 */
byte brings[1];  /* its item */
byte flying[1];  /* whether a transfer, arrival or access is under way */
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

inline settle(b) {  /* any operation that leaves no arrival and no byte outstanding completes the phase */
  if
  :: pending[b] == 0 && tx[b] == 0 -> pending[b] = expected[b]; phase[b] = 1 - phase[b]; completed = 1
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

inline add_tx(b, n) {
  if
  :: life[b] != 1 -> dead(b)
  :: else ->
     tx[b] = tx[b] + (n);
     if
     :: (n) > 1048575 || tx[b] < -1048575 || tx[b] > 1048576 -> fault(tx_range)
     :: else ->
        if
        :: tx[b] == 1048576 -> fault(tx_edge)
        :: else -> settle(b)
        fi
     fi
  fi
}

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
  byte r[1];
  short waits;
  /* 0 INIT barrier=0 count=1  ring.py:0 */
  d_step { init_barrier(0, 1) };
  /* 1 INIT barrier=1 count=1  ring.py:1 */
  d_step { init_barrier(1, 1) };
  /* 2 BAR_SYNC named_barrier=0 threads=64 lanes=32  ring.py:2 */
  atomic { d_step { waits = generation[0] + 1; bar_join(0, 64, 32) }; generation[0] >= waits -> waits = 0 };
  /* 3 TRY_WAIT barrier=1 parity=1 register=0 semantics=0  ring.py:3 */
  if
  :: d_step { life[1] == 1 && phase[1] != 1 -> r[0] = 1 }
  :: d_step { if :: life[1] != 1 -> dead(1) :: else -> r[0] = 0 fi }
  fi;
  /* 4 WAIT_UNLESS barrier=1 parity=1 register=0 semantics=0  ring.py:4 */
  d_step { r[0] != 0 || life[1] != 1 || phase[1] != 1 -> if :: r[0] != 0 :: else -> if :: life[1] != 1 -> dead(1) :: else fi fi };
  /* 5 ARRIVE barrier=0 count=1 expect=64 register=-1 semantics=0  ring.py:5 */
  d_step { arrive(0, 1, 64) };
  /* 6 TMA_LOAD barrier=0 access=0 bytes=64 item=0 cta_mask=0  ring.py:6 */
  d_step { if :: left[0] || flying[0] -> fault(race) :: else fi; cell[0] = -2; cell[1] = -2; left[0] = 64 + 1; brings[0] = 0 };
  /* 7 TRY_WAIT barrier=1 parity=0 register=0 semantics=0  ring.py:7 */
  if
  :: d_step { life[1] == 1 && phase[1] != 0 -> r[0] = 1 }
  :: d_step { if :: life[1] != 1 -> dead(1) :: else -> r[0] = 0 fi }
  fi;
  /* 8 WAIT_UNLESS barrier=1 parity=0 register=0 semantics=0  ring.py:8 */
  d_step { r[0] != 0 || life[1] != 1 || phase[1] != 0 -> if :: r[0] != 0 :: else -> if :: life[1] != 1 -> dead(1) :: else fi fi };
  /* 9 ARRIVE barrier=0 count=1 expect=64 register=-1 semantics=0  ring.py:9 */
  d_step { arrive(0, 1, 64) };
  /* 10 TMA_LOAD barrier=0 access=0 bytes=64 item=1 cta_mask=0  ring.py:10 */
  d_step { if :: left[0] || flying[0] -> fault(race) :: else fi; cell[0] = -2; cell[1] = -2; left[0] = 64 + 1; brings[0] = 1 };
end:
  false
}

/* role 1 */
active proctype a1_role_1() provided (!broken) {
  short waits;
  /* 0 BAR_SYNC named_barrier=0 threads=64 lanes=32  ring.py:0 */
  atomic { d_step { waits = generation[0] + 1; bar_join(0, 64, 32) }; generation[0] >= waits -> waits = 0 };
  /* 1 WAIT barrier=0 parity=0 semantics=0  ring.py:1 */
  d_step { life[0] != 1 || phase[0] != 0 -> if :: life[0] != 1 -> dead(0) :: else fi };
  /* 2 READ access=0 item=0  ring.py:2 */
  d_step { if :: left[0] -> fault(race) :: else fi; flying[0] = 1 };
  d_step { flying[0] = 0; held = cell[0]; look(0); held = cell[1]; look(0) };
  /* 3 ARRIVE barrier=1 count=1 expect=0 register=-1 semantics=0  ring.py:3 */
  d_step { arrive(1, 1, 0) };
  /* 4 WAIT barrier=0 parity=1 semantics=0  ring.py:4 */
  d_step { life[0] != 1 || phase[0] != 1 -> if :: life[0] != 1 -> dead(0) :: else fi };
  /* 5 READ access=0 item=1  ring.py:5 */
  d_step { if :: left[0] -> fault(race) :: else fi; flying[0] = 1 };
  d_step { flying[0] = 0; held = cell[0]; look(1); held = cell[1]; look(1) };
  /* 6 ARRIVE barrier=1 count=1 expect=0 register=-1 semantics=0  ring.py:6 */
  d_step { arrive(1, 1, 0) };
end:
  false
}

/* what is under way lands */
active proctype memory() provided (!broken) {
end:
  do
  /* role 0: operation 6, 10 */
  :: d_step { left[0] -> cell[0] = brings[0]; cell[1] = brings[0]; add_tx(0, 1 - left[0]); left[0] = 0 }
  :: d_step { 0 < tx[0] && tx[0] < left[0] - 1 -> left[0] = left[0] - tx[0]; add_tx(0, -tx[0]) }
  od
}

/* keeps a schedule that broke a rule from being called a deadlock as well */
active proctype watch() { end: do :: broken od }
