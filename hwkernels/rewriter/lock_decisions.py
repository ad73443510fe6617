"""What other CTAs decided in a launch, from its records: how often a lock was found taken, and which tiles they left.

The path of a warp that takes a lock depends on the others. Which path it was is not assumed: full records name their
sites. Where they are more than the program says, at the sites that one more failure repeats and a whole number of times
in each warp, the program is read again with that many failures; whether the records are its, in order, is decided after
that as of any other.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from hwkernels.records.encodings import FULL_SITE
from hwkernels.rewriter.instrument import RewrittenPtx, takes_locks
from hwkernels.rewriter.layout import StreamKey
from hwkernels.rewriter.streams import NOTHING, LaneStream
from hwkernels.rewriter.word_turns import writes
from pipesim.bounds import MAX_LOCK_FAILURES
from pipesim.ptx.emulation import emulate
from pipesim.ptx.extract import emit
from pipesim.ptx.prepare import Kernel

_Counts = dict[StreamKey, Counter[int]]  #: records by stream and number of a site


def as_decided(kernel: RewrittenPtx, streams: Mapping[StreamKey, LaneStream]) -> RewrittenPtx:
    """The kernel, its path with as many failures of a lock as these streams show; as it is if they show none."""
    if not kernel.full or not takes_locks(kernel.kernel.entry):
        return kernel
    there, said = _recorded_counts(streams), _expected_counts(kernel)
    if there == said or not all(stream.ended for stream in streams.values()):
        return kernel
    before = kernel.kernel.launch.policies.lock_failures
    once_more = _expected_counts(_with_failures(kernel, before + 1))
    ratios = set()
    for key, counts in once_more.items():
        for site, times in (counts - said[key]).items():
            ratios.add(Fraction(there[key][site] - said[key][site], times))
    failures = before + ratios.pop() if len(ratios) == 1 else Fraction(-1)
    if failures.denominator != 1 or not 0 <= failures <= MAX_LOCK_FAILURES:
        return kernel
    decided = _with_failures(kernel, int(failures))
    return decided if kernel.writers_of(decided.streams) == kernel.writers else kernel


def as_handed_out(kernel: RewrittenPtx, streams: Mapping[StreamKey, LaneStream]) -> RewrittenPtx:
    """The kernel, its path with the answers of a tile counter in these streams; as it is if there are none."""
    if kernel.words or not kernel.extraction.answers:
        return kernel
    found = [tuple(each.value for each in writes(kernel, key, stream)) for key, stream in streams.items()]
    given = [each for each in found if each]
    if len(given) != 1:
        return kernel
    launch = kernel.kernel.launch
    policies = replace(launch.policies, handed_out=given[0])
    decided = _read_again(kernel, replace(kernel.kernel, launch=replace(launch, policies=policies)))
    return decided if kernel.writers_of(decided.streams) == kernel.writers else kernel


def _recorded_counts(streams: Mapping[StreamKey, LaneStream]) -> _Counts:
    mask = (1 << FULL_SITE[1]) - 1
    tags = {key: stream.words[1 : stream.size // 4 : 2] for key, stream in streams.items()}
    return {key: Counter((mine[mine != NOTHING] & mask).tolist()) for key, mine in tags.items()}


def _expected_counts(kernel: RewrittenPtx) -> _Counts:
    """The same by the program, where a try is made once."""
    found: _Counts = {key: Counter() for key in kernel.writers.streams}
    for path, lanes in zip(kernel.streams, kernel.writers.lanes, strict=True):
        for step in path.path:
            site = kernel.by_position.get(step.position)
            if site is not None:
                for lane in (lane for lane in lanes if step.lanes >> lane & 1):
                    found[StreamKey(path.cta, path.warp, lane)][site.number] += site.records
    return found


def _with_failures(kernel: RewrittenPtx, failures: int) -> RewrittenPtx:
    return _read_again(kernel, kernel.kernel.with_setting("lock_failures", failures))


def _read_again(kernel: RewrittenPtx, again: Kernel) -> RewrittenPtx:
    emulation = emulate(again)
    streams = tuple(emulation.cluster.recorder.streams)
    return replace(kernel, kernel=again, extraction=emit(again, emulation), streams=streams)
