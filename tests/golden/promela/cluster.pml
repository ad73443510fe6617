/* cluster: every schedule of its flat program, for SPIN 6.
 * Parameters: tiles=2
 *
 *   spin -a FILE
 *   tcc -DSAFETY -o pan pan.c
 *   ./pan -m188
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
hidden byte exited_cta = 1;
hidden byte cluster_arrive = 1;
/* barrier 0 is b[0]@0 */
/* barrier 1 is b[0]@1 */
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
byte cluster_arrived;
short cluster_generation;
byte running[2] = {1, 1};  /* agents of each CTA that have not ended */
short cell[2] = -1;  /* the item in each cell of memory: -1 nothing, -2 being written */
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

/* role 0@0 */
active proctype a0_role_0() provided (!broken) {
  short joined;
  /* 0 INIT barrier=0 count=1  ring.py:0 */
  d_step { init_barrier(0, 1) };
  /* 1 CLUSTER_ARRIVE semantics=0  ring.py:1 */
  d_step { cluster_join(2) };
  /* 2 CLUSTER_WAIT semantics=0  ring.py:2 */
  d_step { cluster_generation >= joined -> if :: joined -> joined = 0 :: else -> fault(cluster_arrive) fi };
  /* 3 ARRIVE barrier=1 count=1 expect=0 register=-1 semantics=0  ring.py:3 */
  d_step { if :: running[1] == 0 -> fault(exited_cta) :: else -> arrive(1, 1, 0) fi; running[0] = running[0] - 1 };
end:
  false
}

/* role 1@1 */
active proctype a1_role_1() provided (!broken) {
  byte r[1];
  short joined;
  /* 0 INIT barrier=1 count=1  ring.py:0 */
  d_step { init_barrier(1, 1) };
  /* 1 CLUSTER_ARRIVE semantics=0  ring.py:1 */
  d_step { cluster_join(2) };
  /* 2 CLUSTER_WAIT semantics=0  ring.py:2 */
  d_step { cluster_generation >= joined -> if :: joined -> joined = 0 :: else -> fault(cluster_arrive) fi };
  /* 3 TEST_WAIT barrier=1 parity=0 register=0 semantics=0  ring.py:3 */
  if
  :: d_step { life[1] == 1 && phase[1] != 0 -> r[0] = 1 }
  :: d_step { if :: life[1] != 1 -> dead(1) :: else -> r[0] = 0 fi }
  fi;
  /* 4 JUMP_IF register=0 value=0 skip=1  ring.py:4 */
  if
  :: d_step { r[0] == 0 }; goto L6
  :: d_step { r[0] != 0 }
  fi;
  /* 6 FENCE fence=1 semantics=0  ring.py:6 */
L6:
  skip;
  d_step { skip; running[1] = running[1] - 1 };
end:
  false
}

/* keeps a schedule that broke a rule from being called a deadlock as well */
active proctype watch() { end: do :: broken od }
