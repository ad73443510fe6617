"""The buffer that a rewritten kernel would leave if its warps went along the paths of the program, one step a tick.

The inverse of the decoder, by its own rules: what a store would do is written here a second time. ``tries``: how often
a try fails before it succeeds, by a seeded choice.
"""

from collections.abc import Callable
from random import Random

import numpy as np
import numpy.typing as npt

from hwkernels.records.encodings import FIRST_BLOCK, Flag, full_tag, hash_step
from hwkernels.rewriter.instrument import RewrittenPtx
from hwkernels.rewriter.layout import CURSOR, FRAME_BYTES, HASH, STREAMS
from hwkernels.rewriter.sites import RecordedSite
from pipesim.ptx.emit.record import IF_COMPLETE, IF_NOT_YET, MEET, PathStep


class PathWriter:
    """Writes the streams of one agent."""

    def __init__(self, kernel: RewrittenPtx, agent: int, words: dict[int, npt.NDArray[np.uint32]], seed: int) -> None:
        self.kernel, self.agent, self.words = kernel, agent, words
        self.random = Random(seed)
        self.clock = 1_000
        self.tile = kernel.kernel.launch.policies.tile_counter
        self.at = dict.fromkeys(words, 0)
        self.count = dict.fromkeys(words, 0)
        self.hash = dict.fromkeys(words, 0)
        self.answers: dict[int, bool] = {}

    def run(self) -> None:
        """Go along the whole path."""
        path = self.kernel.streams[self.agent].path
        number, skipping = 0, 0
        while number < len(path):
            step = path[number]
            if skipping:
                skipping += (step.position == IF_NOT_YET) - (step.position == MEET)
                if skipping == 1 and step.position == IF_COMPLETE:
                    skipping = 0
            elif (step.position == IF_NOT_YET and self.answers[step.asked]) or step.position == IF_COMPLETE:
                skipping = 1
            elif step.position in self.kernel.by_position:
                self._step(number, step)
            number += 1
        for lane, words in self.words.items():
            frame = words[-FRAME_BYTES // 4 :]
            frame[:5] = 900, 0, 10_000, 0, 3
            frame[8:12] = self.clock + 100_000, 0, 1_000_000, 0
            frame[CURSOR // 4], frame[HASH // 4] = self.at[lane], self.hash[lane]

    def _step(self, number: int, step: PathStep) -> None:
        site = self.kernel.by_position[step.position]
        lanes = [lane for lane in self.words if step.lanes >> lane & 1]
        tries = site.tries and not site.spins
        answer = not (tries and self.random.random() < 0.3)
        while True:
            last = answer or step.asked >= 0
            self._record(site, number, lanes, passed=answer)
            if last:
                break
            answer = self.random.random() < 0.7
        if step.asked >= 0:
            self.answers[step.asked] = answer

    def _record(self, site: RecordedSite, number: int, lanes: list[int], *, passed: bool) -> None:
        kernel = self.kernel
        run, index = kernel.run_of[site.number]
        stamps = self._stamps(site, number)
        parity = kernel.parities[self.agent].get(number, 0) if site.by_parity else 0
        for lane in lanes:
            words, at = self.words[lane], self.at[lane] // 4
            for n in range(site.records):
                if kernel.full:
                    flags = (Flag.TRIED if site.tries else 0) if n == 0 else (Flag.PASSED if passed else 0)
                    flags |= Flag.PARITY if parity and n == 0 else 0
                    words[at] = stamps[n] if passed or n == 0 else 5
                    words[at + 1] = full_tag(site.number, flags, self.count[lane])
                    self.count[lane] += 1
                    at += 2
                else:
                    words[at] = stamps[n]
                    at += 1
            if site.spins and site.by_parity:
                self.hash[lane] = hash_step(self.hash[lane], FIRST_BLOCK + parity)
            if index == len(run.sites) - 1:
                self.hash[lane] = hash_step(self.hash[lane], run.number)
                if run.lap and not kernel.full:
                    words[at] = self.hash[lane]
                    at += 1
            self.at[lane] = 4 * at
            if index == len(run.sites) - 1 and run.lap:
                self.at[lane] &= ~kernel.layout.size

    def _stamps(self, site: RecordedSite, number: int) -> tuple[int, ...]:
        """The clocks of a site's records, at a step of the path."""
        found = tuple(self.clock + 10 * n for n in range(site.records))
        self.clock += 10 * site.records
        if site.word is not None:  # of a tile counter, which no other CTA asks
            found = *found[:2], self.tile, 0, 0
            self.tile += 1
        return found


def written(kernel: RewrittenPtx, seed: int = 0) -> bytearray:
    """The buffer of a launch."""
    return filled(kernel, lambda agent, words: PathWriter(kernel, agent, words, seed + agent))


def filled(kernel: RewrittenPtx, writer: Callable[[int, dict[int, npt.NDArray[np.uint32]]], PathWriter]) -> bytearray:
    """The buffer that these writers fill; ``writer``: of an agent, with the words of each lane that stores."""
    buffer = bytearray(kernel.initial())
    first = -(-len(buffer) // 4 // 4) * 4 % kernel.layout.stride or 256
    buffer[STREAMS : STREAMS + 8] = first.to_bytes(8, "little")
    for agent, (path, lanes) in enumerate(zip(kernel.streams, kernel.writers.lanes, strict=True)):
        words = {}
        for lane in lanes:
            number = next(
                n
                for n, key in enumerate(kernel.layout.streams)
                if (key.rank, key.warp, key.lane) == (path.cta, path.warp, lane)
            )
            begin = first + number * kernel.layout.stride
            words[lane] = np.frombuffer(buffer, dtype="<u4", offset=begin, count=kernel.layout.stride // 4)
        if words:
            writer(agent, words).run()
    return buffer
