"""``recorder.cuh`` on the CPU: its own text, with every function that contains assembly replaced by what that does."""

from __future__ import annotations

import ctypes
import re
import subprocess
from collections.abc import Mapping, Sequence
from enum import IntEnum
from pathlib import Path

import numpy as np
import numpy.typing as npt

from hwkernels.device.sources import RECORDER

_WORDS = 1 << 12
_FUNCTION = re.compile(r"(?:template <[^>]*>\n)?static __device__ [^;{}()]*\([^;{}]*\) \{")
_MAIN = """
#include <cstring>
#define __device__
#define __forceinline__ inline
static unsigned memory[{words}], clock_now;
static unsigned pipesim_anything() {{ return 0xdeadbeef; }}
static void pipesim_read(unsigned &now, unsigned &) {{ now = clock_now += 10; }}
static void pipesim_read_if(unsigned &now, bool condition) {{ if (condition) now = clock_now += 10; }}
static unsigned pipesim_copy(unsigned word) {{ return word; }}
static void pipesim_store_word(unsigned to, unsigned word) {{ memory[to / 4] = word; }}
template <typename Agent> static void pipesim_store(const Agent &agent) {{
    memory[agent.pointer / 4 - 2] = agent.now;
    memory[agent.pointer / 4 - 1] = agent.tag;
}}
static unsigned long long pipesim_clock() {{ return 0; }}
static unsigned long long pipesim_globaltimer() {{ return 0; }}
#define PIPESIM_TABLE "{table}"
#include "table.cuh"
#include "recorder.cuh"
#if PIPESIM_ENCODING == 2
#define RECORD_IF(when, site, value) pipesim_record_if(pipesim, (when), (site), PIPESIM_IS(WAIT_SITES, (site)));
#else
#define RECORD_IF PIPESIM_RECORD_IF
#endif
extern "C" int run(const unsigned (*said)[4], unsigned count, unsigned capacity, unsigned *words) {{
    PipesimLaunch launch = {{}}, *pipesim_launch = &launch;
    launch.capacity = capacity;
    launch.span = 0xffffffffu;
    launch.agents = 1;
    memset(memory, 0, sizeof memory);
    clock_now = 0;
    PIPESIM_AGENT(0, 0, 1, true, 0)
    for (unsigned n = 0; n < count; ++n) {{
        const unsigned *what = said[n];
        switch (what[0]) {{
        case 0: PIPESIM_AT(what[1], what[2], what[3]) break;
        case 1: PIPESIM_SAY(what[1], what[2], what[3]) break;
        case 2: PIPESIM_RECORD(what[1], what[2]) break;
        case 3: PIPESIM_ANSWER(what[1]) break;
        case 4: PIPESIM_STOP break;
        case 5: PIPESIM_RECORD_AGAIN(what[1], what[2]) break;
        case 6: RECORD_IF(what[3], what[1], what[2]) break;
        }}
    }}
    pipesim_end(pipesim);
    memcpy(words, memory, sizeof memory);
    return (pipesim.kept - PIPESIM_RECORD_BYTES) / 4;
}}
"""


class Say(IntEnum):
    """A macro of the recorder; its numbers follow."""

    AT = 0  #: iteration, stage, parity
    SAY = 1
    RECORD = 2  #: site, value
    ANSWER = 3  #: value
    STOP = 4
    RECORD_AGAIN = 5  #: site, value
    RECORD_IF = 6  #: site, value, condition


Script = Sequence[tuple[int, ...]]


class Recorder:
    """The recorder of one agent, built in ``folder`` for a table and with these macros.

    ``stored``: the words up to the last that the latest run has stored, kept or not.
    """

    stored = 0

    def __init__(self, table: Path, defines: Mapping[str, int], folder: Path) -> None:
        folder.mkdir()
        for path in RECORDER.glob("*.cuh"):
            (folder / path.name).write_text(without_instructions(path.read_text(encoding="utf-8")), encoding="utf-8")
        (folder / table.name).write_bytes(table.read_bytes())
        (folder / "main.cc").write_text(_MAIN.format(words=_WORDS, table=table.name), encoding="utf-8")
        macros = {"PIPESIM_TRACE": 1, "PIPESIM_MEMORY": 0, "PIPESIM_CHECKED": 0, "PIPESIM_COUNTED": 1} | dict(defines)
        options = ["-std=c++14", "-O1", "-shared", "-fPIC", "-w", *(f"-D{name}={macros[name]}" for name in macros)]
        subprocess.run(["g++", *options, "main.cc", "-o", "recorder.so"], cwd=folder, check=True)
        self._run = ctypes.CDLL(str(folder / "recorder.so")).run
        self._of_record = 1 if macros.get("PIPESIM_ENCODING") == 2 else 2

    def run(self, script: Script, capacity: int = 1 << 10) -> npt.NDArray[np.uint32]:
        """(records, words): what is kept of an agent that does this."""
        said = np.array([[*one, 0, 0, 0][:4] for one in script], dtype=np.uint32).reshape(-1, 4)
        words = np.zeros(_WORDS, dtype=np.uint32)
        pointers = (ctypes.c_void_p(array.ctypes.data) for array in (said, words))
        count = self._run(next(pointers), len(said), capacity, next(pointers))
        self.stored = int(np.flatnonzero(words)[-1]) + 1 if words.any() else 0
        return words[self._of_record : self._of_record + count].reshape(-1, self._of_record)


def without_instructions(source: str) -> str:
    """A source without its functions that contain assembly."""
    parts, at = [], 0
    for match in _FUNCTION.finditer(source):
        if match.start() < at:
            continue
        depth, end = 1, match.end()
        while depth:
            depth += {"{": 1, "}": -1}.get(source[end], 0)
            end += 1
        if re.search(r"\basm\b", source[match.end() : end]):
            parts.append(source[at : match.start()])
            at = end
    return "".join((*parts, source[at:]))
