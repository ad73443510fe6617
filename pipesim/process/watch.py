"""What ends a process before its work does: signals, a time limit, a memory limit. Each is raised in the main thread.

SIGINT, SIGTERM and SIGHUP become a SignalError, which is a KeyboardInterrupt, a limit a LimitReachedError. Only the
first is raised, so that nothing interrupts the cleaning up, until :func:`resume` says that it was dealt with.
A thread looks at the memory, because a limit of the kernel would end what only reserves addresses, as CUDA does. The
kernel's limit lies above it, for the one large request that the thread would see too late. The same thread ends the
process where the main thread does not react, as in a library's call that does not return.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic
from types import FrameType
from typing import Any

from pipesim.errors import LimitError
from pipesim.process.limits import Limit, LimitReachedError
from pipesim.process.system import (
    ALARM,
    ENDING,
    HAS_THREADS,
    HELD,
    KILL,
    Arrivals,
    data_bytes,
    hold_signals,
    interrupt_main,
    lower_data_limit,
    resident_bytes,
    set_data_limit,
    set_held,
    set_timer,
)

_POLL_S = 0.05
_LONGEST_S = 1e8  #: of a timer
_GRACE_S = 5.0  #: for the main thread to react
_LAST_WORDS_S = 2.0
_MOST_AGAIN = 2  #: further signals that are ignored while the first is dealt with
_HEADROOM = 2 << 30  #: of the kernel's limit above ours: what libraries reserve and never touch
_MUCH_MORE = 1 << 28  #: bytes that are taken after the limit was reached, beside as much as there was then
_STOP = 0  #: on the pipe of the thread: no signal has this number


temporary_files: set[Path] = set()  #: those of this process that exist now


class SignalError(KeyboardInterrupt):
    """A signal that ends a process. Of a KeyboardInterrupt itself the interpreter keeps a note, and ends by SIGINT."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


Reason = SignalError | LimitReachedError


class Watch:
    """The watch over one process, a context manager. Outside the main thread, which gets the signals, it does nothing.

    ``most_bytes``: the memory of this process, and that of each that it follows; None: not limited. ``signals``: those
    that are raised. ``last_words`` is called with the reason where the process is ended immediately, whatever it does.
    """

    def __init__(
        self,
        most_bytes: int | None = None,
        *,
        signals: Iterable[signal.Signals] = ENDING,
        last_words: Callable[[Reason], None] = lambda _: None,
    ) -> None:
        self.most_bytes = most_bytes
        self.raised: Reason | None = None  #: what is being dealt with
        self._signals = tuple(signals)
        self._last_words = last_words
        self._seconds = 0.0
        self._due = 0.0  #: when the thread reports that a limit of time is reached; 0: never
        self._working = False
        self._over_memory = False
        self._ceiling = 0  #: bytes at which the process is ended: it takes more and more after the limit
        self._followed: set[int] = set()
        self._more = 0
        self._holding = False
        self._held: Reason | None = None  #: to be raised when signals are held no more
        self._again = 0  #: a signal whose exception was lost, to be sent again
        self._ending = threading.Lock()  #: taken by the thread that ends the process
        self._ender = 0  #: which thread that is
        self._seen = 0.0  #: when a handler ran last
        self._given_to: Callable[[int], None] | None = None
        self._before: dict[int, Any] = {}
        self._limit_before: tuple[int, int] | None = None
        self._inert = True

    def __enter__(self) -> Watch:
        if _watching or not in_main_thread() or not HAS_THREADS:
            return self
        self._inert = False
        _watching.append(self)
        self._hook_before, sys.unraisablehook = sys.unraisablehook, self._unraisable
        for number in self._signals:
            if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup
                self._before[number] = signal.signal(number, self._handle)
        self._before[ALARM] = signal.signal(ALARM, self._handle)
        self._arrivals = Arrivals()
        self._thread = threading.Thread(target=self._look, name="pipesim watch", daemon=True)
        with signals_held():  # a thread inherits what it leaves to the others
            self._thread.start()
        # Only now: a thread that gets no memory as it starts ends without a word, and start() waits for it
        # indefinitely.
        # Above what the process has by now, or else nothing at all could be done in it, not even say so.
        if self.most_bytes is not None:
            self._limit_before = lower_data_limit(max(self.most_bytes, data_bytes()) + _HEADROOM)
        return self

    def __exit__(self, *_: object) -> None:
        if self._inert:
            return
        self._set_timer(0)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._arrivals.stop(_STOP)
        self._thread.join()
        self._arrivals.close()
        sys.unraisablehook = self._hook_before
        self.allow_reserving()
        remove_all()
        self._inert = True
        _watching.clear()

    # what the work says

    def start(self, seconds: float | None) -> None:
        """Work begins that may take so long; None: as long as it likes."""
        if not self._inert:
            self._seconds, self._working = seconds or 0.0, True
            self._set_timer(0.0 if seconds is None else min(max(seconds, 1e-6), _LONGEST_S))  # 0 would never end

    def stop(self) -> None:
        """The work is over: no limit is raised after this."""
        if not self._inert:
            self._set_timer(0)
            self._working = False

    def _set_timer(self, seconds: float) -> None:
        """A limit of time; the thread looks at the clock where the system has no timer."""
        if not set_timer(seconds):
            self._due = monotonic() + seconds if seconds else 0.0

    def resume(self) -> None:
        """What was raised has been dealt with: the next may be raised. After a limit the work is over."""
        if isinstance(self.raised, LimitReachedError):
            self.stop()
            if self.raised.limit is Limit.MEMORY:
                _give_back()
        self._more, self._over_memory, self.raised = 0, False, None

    @contextmanager
    def given_to(self, handler: Callable[[int], None], *more: signal.Signals) -> Iterator[None]:
        """While the block waits for a child, its signals are the child's: ``handler`` gets each, and none is raised.

        ``more``: signals that are not raised otherwise, and go to ``handler`` as well.
        """
        self._given_to = handler
        before = {number: signal.signal(number, self._handle) for number in more if not self._inert}
        try:
            yield
        finally:
            for number, usual in before.items():
                signal.signal(number, usual)
            self._given_to = None

    @property
    def is_over_memory(self) -> bool:
        """True if the memory limit was reached, and this is being dealt with."""
        return self._over_memory

    def out_of_memory(self) -> None:
        """The process, or one that it follows, could not get memory: LimitReachedError where that is limited."""
        if not self._inert and self.most_bytes is not None:
            self._over_memory, self._ceiling = True, 2 * self.most_bytes + _MUCH_MORE
            self._raise(self._limit())

    def allow_reserving(self) -> None:
        """Take back the kernel's limit: what follows reserves addresses that it may never touch."""
        if not self._inert and self._limit_before is not None:
            set_data_limit(self._limit_before)
            self._limit_before = None

    def follow(self, process: int) -> None:
        """The memory of a child counts as this process's own: it is killed where it has too much."""
        self._followed.add(process)

    def leave(self, process: int) -> None:
        """The child has ended."""
        self._followed.discard(process)

    # in the main thread

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        self._seen = monotonic()
        if self._given_to is not None and number != ALARM:
            self._given_to(number)
            return
        if self.raised is not None:
            self._more += number != ALARM
            if self._more > _MOST_AGAIN:
                self._end(self.raised)
            return
        if number != ALARM:
            self._raise(SignalError(number))
        elif self._working:  # it may come as the work ends
            self._raise(self._limit())

    def _raise(self, reason: Reason) -> None:
        if self._holding:
            self._held = self._held or reason
            return
        self.raised = reason
        raise reason

    def hold(self) -> None:
        """Raise nothing from now on; also where another thread gets a signal that this one has blocked."""
        self._holding = True

    def let_go(self) -> None:
        """Raise what was held."""
        self._holding = False
        if self._held is not None:
            held, self._held = self._held, None
            self._raise(held)

    def _limit(self) -> LimitReachedError:
        if self._over_memory:
            return LimitReachedError(Limit.MEMORY, self.most_bytes or 0)
        return LimitReachedError(Limit.TIME, self._seconds)

    def _unraisable(self, lost: sys.UnraisableHookArgs) -> None:
        """What is raised in a destructor or a callback of C is lost: it is sent again."""
        if lost.exc_value is not None and lost.exc_value is self.raised:
            reason, self.raised = self.raised, None
            self._again = signal_of(reason)
        else:
            self._hook_before(lost)

    # in the thread

    def _look(self) -> None:
        number, due = 0, 0.0  #: a signal that arrived, and when the main thread has had its time to react
        while True:
            arrived = self._arrivals.wait(_POLL_S)
            if _STOP in arrived:
                return
            if arrived and not due:
                number, due = arrived[0], monotonic() + _GRACE_S
            if self._seen >= due - _GRACE_S - 1:  # a byte may be read later than its signal was handled
                due = 0.0
            if due and monotonic() > due:
                self._end(self._limit() if number == ALARM else SignalError(number))
            if 0 < self._due < monotonic():
                self._due = 0.0
                interrupt_main(ALARM)
            if self._again:
                again, self._again = self._again, 0
                interrupt_main(again)
            if self.most_bytes is not None and self._working:
                self._look_at_memory(self.most_bytes)

    def _look_at_memory(self, most: int) -> None:
        for child in list(self._followed):
            if resident_bytes(child) > most:
                self._over_memory, self._ceiling = True, 2 * most + _MUCH_MORE
                with suppress(ProcessLookupError):
                    os.kill(child, KILL)
                interrupt_main(ALARM)
        mine = resident_bytes()
        if mine > most and not self._over_memory:
            self._over_memory, self._ceiling = True, 2 * mine + _MUCH_MORE
            interrupt_main(ALARM)
        elif self._over_memory and mine > self._ceiling:
            self._end(LimitReachedError(Limit.MEMORY, most))

    def _end(self, reason: Reason) -> None:
        """End the process, wherever the main thread is. What it says may wait for that thread: it has little time.

        Once: where the main thread and the watching one come here together, the second waits for the first.
        """
        if not self._ending.acquire(blocking=False):
            if self._ender != threading.get_ident():
                threading.Event().wait()
            return
        self._ender = threading.get_ident()
        speaker = threading.Thread(target=self._last_words, args=(reason,), daemon=True)
        speaker.start()
        speaker.join(_LAST_WORDS_S)
        remove_all()
        os._exit(exit_code_of(reason))


_watching: list[Watch] = []  #: signals are a process's, so there is one watch at most


def current() -> Watch:
    """The watch of this process, one that does nothing if there is none."""
    return _watching[0] if _watching else Watch()


@contextmanager
def signals_held() -> Iterator[set[int]]:
    """What the block does is done whole: signals wait until its end. It gets the mask of signals from before."""
    watch = current()
    before = hold_signals(HELD)
    watch.hold()
    try:
        yield before
    finally:
        set_held(before)
        watch.let_go()


def exit_code_of(reason: BaseException) -> int:
    """The exit code of a process that ends for this reason: of a signal as a shell reports it."""
    return LimitError.exit_code if isinstance(reason, LimitReachedError) else 128 + signal_of(reason)


def signal_of(reason: BaseException | None) -> int:
    """The signal that a reason is raised for: SIGALRM for a limit, SIGINT where Python itself raised it."""
    if isinstance(reason, LimitReachedError):
        return ALARM
    return reason.number if isinstance(reason, SignalError) else signal.SIGINT


def in_main_thread() -> bool:
    """True in the thread that gets signals, and that lives as long as its process."""
    return threading.current_thread() is threading.main_thread()


def forget_in_child() -> None:
    """In a child that was forked: signals end it that are not ignored here, and nothing of the watch is its own."""
    _watching.clear()
    signal.set_wakeup_fd(-1)
    for number in HELD:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


def _give_back() -> None:
    """What is free goes back to the system, so that the next work begins with what it needs."""
    gc.collect()
    if sys.platform == "linux":
        import ctypes

        with suppress(AttributeError):  # another C library than glibc
            ctypes.CDLL(None).malloc_trim(0)


def remove(temporary: Path) -> None:
    """Remove a temporary file, if it still exists."""
    if temporary in temporary_files:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        temporary_files.discard(temporary)


def remove_all() -> None:
    """Remove every temporary file of this process, which is about to end without an orderly end."""
    for each in list(temporary_files):
        remove(each)
