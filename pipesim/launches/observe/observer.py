"""What is done at each call of the driver that CUPTI reports: launches, modules, tensor maps, graphs.

A launch that is like one before costs a look at its bytes. Everything else happens once for each distinct launch. Two
launches are alike if they have the same kernel of the same image, the same shape, and parameters that differ in
addresses alone, each with the same alignment.
"""

import _thread
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ctypes import c_int, string_at
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import Any, NamedTuple, Protocol

from pipesim.launches.observe import calls
from pipesim.launches.observe.alike import ALL, AT_ITS_END, MOST, AlikeLaunches
from pipesim.launches.observe.attempts import Attempt, attempt_of, exchange_function, shape_of
from pipesim.launches.observe.driver import CudaDriver, Shape, word_at
from pipesim.launches.observe.limits import Limits
from pipesim.launches.observe.loaded_images import KernelCode, LoadedImages
from pipesim.launches.observe.parameters import (
    MOST_COPIED,
    Layout,
    MembersOf,
    PointerWord,
    RawParameter,
    TensorMaps,
    examine_parameters,
    pointers_wanted,
    raw_parameters,
    unread_bytes,
    unwritten_halves,
)
from pipesim.launches.observe.spool import Spool

_PATIENCE = 2.0  #: seconds that one thread waits for another one's record
_REMEMBERED = 1 << 17  #: launches whose bytes are known, before all are forgotten


@dataclass
class Tally:
    """How often one kernel was launched, and with how many distinct launches, of which some were left out."""

    kernel: str
    image: str
    launches: int = 0
    distinct: int = 0
    left_out: int = 0


class KnownFunction(NamedTuple):
    """What is known about a function: its tally, its parameters, its code. ``code`` is None where it is not wanted.

    ``unread``: bytes of parameters that it does not read, which count as zeros.
    """

    tally: Tally
    layout: Layout | None
    code: KernelCode | None
    unread: tuple[tuple[int, int], ...] = ()

    def raw_parameters(self, attempt: Attempt) -> tuple[bytes, ...] | None:
        """The bytes of each parameter of a launch, None where they are not known."""
        raw = None if self.layout is None else raw_parameters(self.layout, attempt.parameters, attempt.extra)
        if not self.unread or raw is None:
            return raw
        plain = [bytearray(each) for each in raw]
        for number, at in self.unread:
            plain[number][at] = 0
        return tuple(map(bytes, plain))


class DescribedCall(NamedTuple):
    """A launch as a record says it, with its parameters, and its kernel's code, None where it is not wanted."""

    record: dict[str, Any]
    code: KernelCode | None


class Exchange(Protocol):
    """What has a launch take place with another kernel: it is asked before each, and called when it was made.

    ``begin`` gives the function to launch in place of the program's own, 0 for none; ``describe`` says what the launch
    is. ``end`` comes on the same thread.
    """

    def begin(
        self, function: int, stream: int, describe: Callable[[], DescribedCall], *, in_graph: bool = False
    ) -> int:
        """Before a launch, or before that of a graph which has it."""

    def end(self, *, launched: bool, keeps_buffers: bool = False) -> None:
        """After a launch, which the driver has taken or refused. ``keeps_buffers``: what was begun may run again."""

    def is_done(self, function: int) -> bool:
        """Whether it need not be asked about a function any more."""


class LaunchObserver:
    """Gets the driver's calls from CUPTI and writes records to the spool."""

    def __init__(self, driver: CudaDriver, spool: Spool, limits: Limits, images: LoadedImages) -> None:
        self._driver, self._spool, self._limits, self._images = driver, spool, limits, images
        self._maps = TensorMaps()
        self._members_of: MembersOf = self._maps.get
        self._replaced: dict[int, dict[str, Any] | None] = {}  #: by thread, between a call and its end
        self._known: dict[int, KnownFunction] = {}
        self._kernels: dict[int, int] = {}  #: by their functions, which graphs have: another one in each context
        self._contexts: set[tuple[int, int]] = set()  #: of functions that are in ``_kernels``
        self._seen: dict[tuple[Any, ...], Tally] = {}  #: by the bytes of a launch
        self._distinct: dict[tuple[Any, ...], int] = {}  #: the number of each record, -1 if it was left out
        self._placed: dict[tuple[Any, ...], dict[str, Any]] = {}  #: by the bytes of a launch, what its step says
        self._written = 0
        self.ordered = limits.ordered  #: steps that are still to be recorded
        self._tallies: dict[tuple[str, str], Tally] = {}
        self._wanted: dict[tuple[str, str], frozenset[tuple[int, int]]] = {}
        self._recorded = 0
        self._lock = threading.RLock()
        self._inside = threading.local()
        self._failed: set[str] = set()
        self.exchange: Exchange | None = None
        self.alike: AlikeLaunches | None = None
        self._counters: dict[int, tuple[int, Tally]] = {}  #: by the tally: its number for ``alike``

    def be_asked_by(self, alike: AlikeLaunches) -> None:
        """Be called about launches of new kinds alone, and about no tensor map."""
        self.alike, self._members_of = alike, alike.members_of

    def on_call(self, number: int, address: int) -> int:
        """A call of the driver, before it or after it. No error here reaches the program.

        The answer is for ``alike``: which launches like this one need not be reported.
        """
        if getattr(self._inside, "now", False):
            return 0
        self._inside.now = True
        answer = 0
        try:
            data = calls.CallbackData.from_address(address)
            if number >= calls.GRAPH_CHOICE:
                self._of_graph_launch(number, address)
            elif data.site == 0:
                answer = self._before_call(number, data)
            elif number not in calls.LAUNCH and number not in calls.LAUNCH_EX:
                self._after_call(number, data)
            elif self.exchange is not None:
                self.exchange.end(launched=_succeeded(data))
        except KeyboardInterrupt:
            _thread.interrupt_main()  # the program gets it once its call returns
        except Exception as error:  # noqa: BLE001  # of ours: the program continues as if it were not observed
            self._note(f"an error of pipesim in the observed process: {type(error).__name__}: {error}")
        finally:
            self._inside.now = False
        return answer

    def finish(self) -> None:
        """Write how often each kernel was launched."""
        self._spool.introduce(self._driver.device)
        for counter, tally in self._counters.values():
            tally.launches += self.alike.count(counter) if self.alike is not None else 0
        for each in self._tallies.values():
            self._spool.write({"kind": "count", **vars(each)})
        if self._spool.full:
            self._spool.note("the limit on bytes was reached: further launches are counted only")

    def _before_call(self, number: int, data: Any) -> int:
        if number in calls.LAUNCH_EX or number in calls.LAUNCH:
            attempt = attempt_of(number, data.arguments)
            self._count_launch(attempt, data.symbol)
            if (attempt.function, data.context) not in self._contexts:
                self._contexts.add((attempt.function, data.context))
                self._kernels[self._driver.function_of(attempt.function)] = attempt.function
            return self._exchange(number, data, attempt) | self._counter_for(attempt.function)
        if number in calls.INSTANTIATE:
            self._graph(calls.FirstTwo.from_address(data.arguments).second or 0)
        elif number in calls.UNLOAD:
            with self._try_lock():
                self._images.forget(calls.FirstTwo.from_address(data.arguments).first or 0)
                self._known.clear()  # a handle may be given again
                self._kernels.clear()
                self._contexts.clear()
                self._seen.clear()
        elif number == calls.REPLACE:
            place = calls.FirstTwo.from_address(data.arguments).first
            self._replaced[threading.get_ident()] = self._maps.map_before_change(place)
        elif number in calls.LINK_ADD:
            given = calls.LinkAdd.from_address(data.arguments)
            if given.kind == calls.PTX_INPUT:
                self._images.link_input(given.state, string_at(given.data, given.size))
        return 0

    def _exchange(self, number: int, data: Any, attempt: Attempt) -> int:
        """Have the launch take place with another kernel, if it is to be recorded; its end is asked for then."""
        if self.exchange is None:
            return 0
        describe = partial(self._described, attempt, data.symbol)
        chosen = self.exchange.begin(attempt.function, attempt.stream, describe)
        if chosen:
            exchange_function(number, data.arguments, chosen)
        return AT_ITS_END if chosen else 0

    def _of_graph_launch(self, number: int, address: int) -> None:
        """What our library asks and says about a launch of a graph (inject/graphs.h)."""
        if number == calls.GRAPH_NOTE:
            self._note(string_at(address).decode())
        elif self.exchange is not None and number == calls.GRAPH_END:
            end = calls.GraphEnd.from_address(address)
            self.exchange.end(launched=end.launched, keeps_buffers=end.keeps_buffers)
        elif self.exchange is not None:
            given = calls.GraphChoice.from_address(address)
            function, stream = self._kernel_of(given.function or 0), given.stream or 0
            cluster = tuple(given.cluster)
            attempt = Attempt(
                function, *shape_of(given), cluster if cluster[0] else None, given.shared, stream,
                given.parameters or 0, given.extra or 0, "graph", in_graph=(given.place or b"").decode(),
            )  # fmt: skip
            describe = partial(self._described, attempt, None)
            given.chosen = 0 if given.asks else self.exchange.begin(function, stream, describe, in_graph=True)
            given.is_done = self.exchange.is_done(function)

    def _has_code(self, known: KnownFunction) -> bool:
        return known.code is not None and bool(known.code.name or self._limits.dump)

    def _kernel_of(self, function: int) -> int:
        return self._kernels.get(function, function) if function else 0

    def _counter_for(self, function: int) -> int:
        """The counter of launches like one of a function that was just counted; 0 where each is to be reported."""
        known = self._known.get(function)
        if self.alike is None or self.ordered > 0 or known is None:
            return 0
        if self.exchange is not None and not self.exchange.is_done(function):
            return 0
        tally = known.tally
        counter, _ = self._counters.setdefault(id(tally), (len(self._counters), tally))
        is_every = self.exchange is not None or not self._has_code(known)
        return (counter + 1 if counter < MOST else 0) | (ALL if is_every else 0)

    def _after_call(self, number: int, data: Any) -> None:
        """What a call has made, if it succeeded."""
        if not _succeeded(data):
            return
        if number in calls.LOAD:
            pair = calls.FirstTwo.from_address(data.arguments)
            with self._try_lock():
                self._images.note_loaded(word_at(pair.first), pair.second or 0, is_path=number in calls.LOAD_FILE)
        elif number in calls.ORDER:
            with self._try_lock():
                self._order_call(number, data.arguments)
        elif number in calls.ENCODE:
            self._maps.note_encoded(number, data.arguments)
        elif number == calls.REPLACE:
            place = calls.FirstTwo.from_address(data.arguments).first
            self._maps.note_replaced(place, self._replaced.pop(threading.get_ident(), None))
        elif number == calls.LINK_COMPLETE:
            given = calls.LinkComplete.from_address(data.arguments)
            self._images.note_linked(given.state, string_at(word_at(given.image), word_at(given.size)))

    def _count_launch(self, attempt: Attempt, symbol: bytes | None) -> None:
        known = self._known.get(attempt.function)
        if known is not None:
            if not self._has_code(known):
                known.tally.launches += 1
                self._step(attempt, {"kernel": known.tally.kernel})
                return
            raw = known.raw_parameters(attempt)
            key = (attempt.function, attempt.grid, attempt.block, attempt.cluster, attempt.shared, raw)
            tally = self._seen.get(key)
            if tally is not None:
                tally.launches += 1
                self._step(attempt, self._placed.get(key, {}))
                return
        with self._try_lock():
            self._first_sight(attempt, symbol.decode(errors="replace") if symbol else "")

    def _described(self, attempt: Attempt, symbol: bytes | None) -> DescribedCall:
        with self._try_lock():
            name = symbol.decode(errors="replace") if symbol else ""
            known = self._known.get(attempt.function) or self._learn(attempt, name)
            raw = known.raw_parameters(attempt)
            given = None if raw is None else examine_parameters(raw, self._driver, self._members_of)
            return DescribedCall(self._describe(attempt, known, given), known.code)

    def _first_sight(self, attempt: Attempt, name: str) -> None:
        known = self._known.get(attempt.function) or self._learn(attempt, name)
        tally, code = known.tally, known.code
        tally.launches += 1
        if code is None or not self._has_code(known):
            if code is not None and tally.launches == 1:
                self._write(
                    _record_of(attempt, known, (1, 1, 1)) | {"why_not": code.why_not, "parameters_known": False}
                )
            self._step(attempt, {"kernel": tally.kernel})
            return
        raw = known.raw_parameters(attempt)
        if len(self._seen) >= _REMEMBERED:
            self._seen.clear()
        bytes_ = attempt.function, attempt.grid, attempt.block, attempt.cluster, attempt.shared, raw
        self._seen[bytes_] = tally
        given = None if raw is None else examine_parameters(raw, self._driver, self._members_of)
        masked = None if given is None else tuple(each.without_addresses() for each in given)
        shape = attempt.grid, attempt.block, attempt.cluster, attempt.shared
        maps = () if given is None else tuple(repr(each.maps) for each in given)
        key = (tally.kernel, tally.image, *shape, masked, maps)
        if key not in self._distinct:
            tally.distinct += 1
            self._distinct[key] = self._written
            if self._recorded >= self._limits.launches or (self._limits.once and tally.distinct > 1):
                self._distinct[key], tally.left_out = -1, tally.left_out + 1
            elif self._write(self._describe(attempt, known, given)):
                self._recorded += 1
            else:
                self._distinct[key], tally.left_out = -1, tally.left_out + 1
        if self.ordered > 0:
            places = [place for number, each in enumerate(given or ()) for place in each.places(number, self._driver)]
            self._placed[bytes_] = {"kernel": tally.kernel, "launch": self._distinct[key], "buffers": places}
            self._step(attempt, self._placed[bytes_])

    def _step(self, attempt: Attempt, said: dict[str, Any]) -> None:
        """Record that a launch comes next in its stream, where the order is asked for."""
        if self.ordered > 0 and attempt.via == "launch" and self._driver.is_capturing(attempt.stream) is False:
            self._order(said | {"stream": str(attempt.stream), "programmatic": attempt.programmatic})

    def _order(self, step: dict[str, Any]) -> None:
        self.ordered -= 1
        self._spool.write({"kind": "step", **step})

    def _order_call(self, number: int, address: int) -> None:
        """Record an event, a wait for one, or that the host has waited."""
        given = calls.FirstTwo.from_address(address)
        first, second = str(given.first or 0), str(given.second or 0)
        if number in calls.RECORD:
            self._order({"act": "record", "event": first, "stream": second})
        elif number in calls.WAIT:
            self._order({"act": "wait", "event": second, "stream": first})
        elif calls.HOST[number] == "event":
            self._order({"act": "wait", "event": first, "stream": ""})
        else:
            self._order({"act": "synchronize", "event": "", "stream": first if calls.HOST[number] else ""})

    def _learn(self, attempt: Attempt, symbol: str) -> KnownFunction:
        """What there is to know about a function that is launched for the first time."""
        function = attempt.function
        name = symbol or self._driver.name(function)
        owner = self._driver.owner(function)
        image = self._images.key_of(owner)
        tally = self._tallies.setdefault((name, image), Tally(name, image))
        code = layout = None
        if self._limits.wants(name):
            code = self._images.code_of(owner, function, name, self._spool)
            layout = self._driver.parameter_sizes(function)
        else:
            del self._tallies[name, image]
        unread = unread_bytes(code.text, name, layout) if code is not None and code.text and layout else ()
        if code is not None and layout is not None:
            raw = raw_parameters(layout, attempt.parameters, attempt.extra) or ()
            unread += unwritten_halves(raw, self._members_of)
        made = KnownFunction(tally, layout, code, unread)
        self._known[function] = made
        if self.alike is not None and layout is not None and unread:
            begins = [0, *accumulate(size for _, size in layout)]
            self.alike.leave_out(function, [begins[number] + at for number, at in unread])
        return made

    def _describe(
        self, attempt: Attempt, known: KnownFunction, given: tuple[RawParameter, ...] | None
    ) -> dict[str, Any]:
        cluster = attempt.cluster or self._driver.required_cluster(attempt.function) or (1, 1, 1)
        capturing = attempt.via == "launch" and self._driver.is_capturing(attempt.stream) is not False
        wanted = self._pointers(known) if given is not None else frozenset()
        parameters = [
            {
                "bytes": each.data.hex(),
                "pointers": [
                    {"at": at.at, "align": at.align}
                    | (self._contents(attempt, at, capturing=capturing) if (number, at.at) in wanted else {})
                    for at in each.pointers
                ],
                "maps": [{"at": at, **members} for at, members in each.maps],
            }
            for number, each in enumerate(given or ())
        ]
        record = _record_of(attempt, known, cluster)
        if capturing:
            record["via"] = "graph"
        if attempt.in_graph:
            record["in_graph"] = attempt.in_graph
        record["registers"] = self._driver.registers(attempt.function)
        if self._limits.copies and record["via"] == "launch":
            record["memory"] = self._memory(attempt, given or ())
        return record | {"parameters": parameters, "parameters_known": given is not None}

    def _memory(self, attempt: Attempt, given: tuple[RawParameter, ...]) -> list[tuple[int, int, str]]:
        """Copies of the allocations that the parameters lead to: address, bytes, and the file, "" if there is no room.

        Empty where one cannot be copied.
        """
        places = [address for number, each in enumerate(given) for *_, address in each.places(number, self._driver)]
        copies: dict[int, tuple[int, int, str]] = {}
        for address in places:
            found = self._driver.allocation(address)
            if found is None or found[0] in copies:
                continue
            start, nbytes = found
            fits = nbytes <= self._spool.copies
            data = self._driver.copy(start, nbytes, after=attempt.stream) if fits else None
            if fits and (data is None or len(data) < nbytes):
                self._note("memory was not copied for a launch: the work before it takes too long")
                return []
            copies[start] = start, nbytes, self._spool.memory(data) if data else ""
        return list(copies.values())

    def _pointers(self, known: KnownFunction) -> frozenset[tuple[int, int]]:
        assert known.code is not None
        key = known.code.name, known.tally.kernel
        if key not in self._wanted:
            self._wanted[key] = pointers_wanted(known.code.text, known.tally.kernel)
        return self._wanted[key]

    def _contents(self, attempt: Attempt, pointer: PointerWord, *, capturing: bool) -> dict[str, str]:
        """The memory at a pointer, if it can be read without changing anything of the program's order."""
        nbytes = min(pointer.nbytes, MOST_COPIED)
        if capturing or attempt.via == "graph" or nbytes == 0:
            self._note("arrays that kernels of a graph read were not copied: their contents are those of a later time")
            return {}
        data = self._driver.copy(pointer.address, nbytes, after=attempt.stream)
        if data is None:
            self._note("an array that a kernel reads was not copied: the work before its launch takes too long")
            return {}
        return {"contents": data.hex()}

    def _graph(self, graph: int) -> None:
        """The kernels of a graph that becomes executable."""
        with self._try_lock():
            nodes = self._driver.kernel_nodes(graph)
            if nodes is None:
                self._note("the kernels of a CUDA graph could not be read: those that were not launched by a stream")
            for node, cluster in nodes or ():
                function = self._kernel_of(node.function or node.kernel or 0)
                grid, block = shape_of(node)
                given = node.parameters or 0, node.extra or 0
                self._count_launch(Attempt(function, grid, block, cluster, node.shared, 0, *given, "graph"), None)

    def _write(self, record: dict[str, Any]) -> bool:
        self._spool.introduce(self._driver.device)
        written = self._spool.write({"kind": "launch", **record})
        self._written += written
        return written

    def _note(self, text: str) -> None:
        if text not in self._failed:
            self._failed.add(text)
            self._spool.note(text)

    @contextmanager
    def _try_lock(self) -> Iterator[None]:
        """One thread at a time; a thread that has to wait for long does without the order."""
        held = self._lock.acquire(timeout=_PATIENCE)
        try:
            yield
        finally:
            if held:
                self._lock.release()


def _record_of(attempt: Attempt, known: KnownFunction, cluster: Shape) -> dict[str, Any]:
    """The members of a record that every launch has."""
    code = known.code or KernelCode("")
    return {
        "kernel": known.tally.kernel,
        "image": known.tally.image,
        "code": code.name,
        "origin": code.origin,
        "grid": attempt.grid,
        "block": attempt.block,
        "cluster": cluster,
        "dynamic_shared": attempt.shared,
        "via": attempt.via,
    }


def _succeeded(data: Any) -> bool:
    return not data.result or c_int.from_address(data.result).value == 0
