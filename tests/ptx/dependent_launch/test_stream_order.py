"""What is complete at a launch, compared with the paths of a graph of starts, triggers, waits and ends."""

import random
from collections import defaultdict
from pathlib import Path

from pipesim.answers.launch_sequence.check import launch_moments
from pipesim.answers.launch_sequence.file import SequencedLaunch, StreamAct
from pipesim.answers.launch_sequence.kernel_uses import KernelUses
from pipesim.answers.views.sequence import Promise

Moment = tuple[str, int]


def test_random_streams_promise_what_every_path_has() -> None:
    for seed in range(300):
        rng, steps, kernels = random.Random(seed), list[SequencedLaunch | StreamAct](), list[KernelUses]()
        before, launched = defaultdict[Moment, set[Moment]](set), defaultdict[str, list[Moment]](list)
        awaited, event, host = defaultdict[str, set[Moment]](set), set[Moment](), set[Moment]()
        for _ in range(rng.randint(3, 8)):
            stream, number = rng.choice("ab"), len(kernels)
            every = {*launched[stream]} | awaited[stream] | host
            match rng.choice(("launch", "launch", "launch", "record", "wait", "synchronize")):
                case "launch":
                    waits, triggers, after = (rng.random() < 0.5 for _ in range(3))
                    kernels.append(KernelUses("k", (), "w" * waits, "t" * triggers, triggers and waits and after))
                    programmatic = rng.random() < 0.7
                    steps.append(SequencedLaunch(Path(), Path(), stream, programmatic, {}))
                    overlaps = programmatic and launched[stream]
                    end = launched[stream][-1] if overlaps else ("end", number)
                    begun = ("trigger", end[1]) if overlaps and kernels[end[1]].triggers else end
                    before["start", number] = awaited[stream] | host | {begun} if overlaps else every
                    before["wait", number] = {("start", number), *([end] if overlaps else [])}
                    before["trigger", number] = {("wait" if kernels[-1].triggers_after_wait else "start", number)}
                    before["end", number] = {("trigger", number), ("wait" if waits else "start", number)}
                    launched[stream].append(("end", number))
                case act:
                    steps.append(StreamAct(act, stream, "" if act == "synchronize" else "e"))
                    event = every if act == "record" else event
                    awaited[stream] |= event if act == "wait" else set()
                    host |= every if act == "synchronize" else set()
        for number, moment in enumerate(launch_moments(steps, kernels)):
            for kind, complete in (("start", moment.start), ("wait", moment.after)):
                reached, left = set[Moment](), [(kind, number)]
                while left:
                    new = before[left.pop()] - reached
                    reached |= new
                    left += new
                for earlier in range(number):
                    promise, path = complete.get(earlier, Promise.NONE), ("end", earlier) in reached
                    assert promise is Promise.SEEN or (promise is Promise.PROMISED) == path, (seed, earlier, number)
