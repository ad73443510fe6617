"""``python -m tests.litmus.run FILE [--runs N] [--only TEXT]``: what a GPU does in the litmus tests, in a file."""

import argparse
import json
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from hwkernels.device.compile import CompiledKernel, compile_cubin, nvrtc_version
from hwkernels.device.launch import Gpu, Shape, require_gpu
from pipesim.process.files import write_whole
from tests.litmus.table import WORDS, Litmus, LitmusStep, litmus_tests

_PER_ROLE, _ROUNDS, _LIMIT_S = 128, 32, 20.0  # litmus.cu has the first
_STRIDES = (16, 64, 256, 32, 128)  #: bytes from an instance's word to the next one's, one launch after the other
_STRESS_BYTES = 4 * (64 + (1 << 16))
_KEYS = 4096  #: outcomes of six values of two bits
_HEAD = "__device__ __noinline__ void role_{}(char* x, char* y, char* z, u8* f, u32 instances, u32 round)"
_RUN = "__device__ void run(u32 cta, u32 role, char* x, char* y, char* z, u8* f, u32 instances, u32 round)"


def source(test: Litmus) -> str:
    """``threads.h`` of a test."""
    roles, calls, value = [], [], 0
    for n, (cta, steps) in enumerate(zip(test.ctas, test.threads, strict=True)):
        lines, kept = ["u32 r = 0;"], []
        for k, step in enumerate(steps):
            lines.append(_line(step, f"r{k}"))
            if step.found is not None:  # kept until the end: a store in between would wait for the load
                kept.append(f"f[{value}ull * instances] = class_of(r{k});")
                value += 1
        roles.append("\n".join([f"{_HEAD.format(n)} {{", *lines, *kept, "}"]))
        here = f"cta == {cta} && role == {test.ctas[:n].count(cta)}"
        calls.append(f"if ({here}) role_{n}(x, y, z, f, instances, round);")
    finals = [str(WORDS.index(word)) for word, _ in test.final]
    numbers = f"kCtas = {max(test.ctas) + 1}, kValues = {value}, kWords = {len(finals)}"
    constants = f"constexpr u32 {numbers}, kFinals[] = {{{', '.join(finals or ['0'])}}};"
    cluster = f"constexpr bool kCluster = {str(test.cluster).lower()};"
    return "\n".join([constants, cluster, *roles, f"{_RUN} {{", *calls, "}\n"])


def _line(step: LitmusStep, result: str) -> str:
    kind, last = step.parts[0], step.parts[-1]
    place = f"{step.place[0]} + {step.place[1]}" if step.place[0] else "x"
    match kind:
        case "bulk" if step.found is not None:
            return f"u32 {result} = bulk_load({place}, &slots[threadIdx.x], &done[threadIdx.x], round & 1);"
        case "bulk":
            return f"bulk_store<{ ({'st': 2, 'read': 1, 'none': 0}[last]) }>({place}, &slots[threadIdx.x]);"
        case "arrive" | "mwait":
            call, parity = ("arrive", "") if kind == "arrive" else ("wait", ", round & 1")
            return f"{call}<{str(last == 'relaxed').lower()}>(&middle{parity});"
        case "bar":
            return 'asm volatile("bar.sync 1, 256;" ::: "memory");'
    if step.found is None:
        return f'asm volatile("{step.ptx("", "%0", "%1")}" ::"l"({place}), "r"(r) : "memory");'
    if "v2" in step.parts:
        text = step.ptx("{%0, %1}", "%2", "")
        made = f'u32 a_{result}, b_{result}; asm volatile("{text}" : "=r"(a_{result}), "=r"(b_{result})'
        return f'{made} : "l"({place}) : "memory"); const u64 {result} = a_{result} | u64(b_{result}) << 32;'
    kept, type_ = ("l", "u64") if step.size == 8 else ("r", "u32")
    text = f'asm volatile("{step.ptx("%0", "%1", "")}" : "={kept}"({result}) : "l"({place}) : "memory");'
    return f"{type_} {result}; {text}" + (f" r = {result};" if step.size == 4 else "")


def compiled(test: Litmus) -> CompiledKernel:
    """The machine code of a test."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "litmus.cu")
        path.write_text(Path(__file__).with_name(path.name).read_text())
        path.with_name("threads.h").write_text(source(test))
        return compile_cubin(path, {})


def outcomes(gpu: Gpu, test: Litmus, code: CompiledKernel, runs: int) -> dict[str, int]:
    """How often each outcome came: the values that the threads found, in order, then the last ones of words."""
    ctas, roles = max(test.ctas) + 1, max(test.ctas.count(each) for each in test.ctas)
    groups, kernel = 2 * gpu.info.sms // ctas, gpu.load(code, 0)
    instances, width = groups * _ROUNDS * _PER_ROLE, len(asked(test).split())
    areas = (3 * instances * max(_STRIDES), 6 * instances, 4 * groups * _ROUNDS + _STRESS_BYTES, 8 * _KEYS)
    places = [gpu.allocate(each) for each in areas]
    gpu.fill(places[3], 0, areas[3])
    for n in range(-(-runs // instances)):
        stride = _STRIDES[n % len(_STRIDES)]
        for place, size in zip(places[:3], (3 * instances * stride, *areas[1:3]), strict=True):
            gpu.fill(place, 0, size)
        numbers = np.array([groups, _ROUNDS, stride, 977 * n], dtype=np.uint32).tobytes()
        launch = np.frombuffer(np.array(places, dtype=np.uint64).tobytes() + numbers, dtype=np.uint8)
        for counting in (0, 1):
            stress = 0 if counting or n % 3 == 0 else gpu.info.sms // ctas * ctas
            shape = Shape((groups * ctas + stress,), (_PER_ROLE * roles,), 0, ctas if test.cluster else 1)
            gpu.launch_within(kernel, shape, (launch, np.uint32(counting)), _LIMIT_S)
    counts = np.zeros(_KEYS, dtype=np.uint64)
    gpu.download(places[3], counts)
    return {" ".join(str(n >> 2 * k & 3) for k in range(width)): int(c) for n, c in enumerate(counts) if c}


def asked(test: Litmus) -> str:
    """The outcome that the table asks for, as :func:`outcomes` names it."""
    found = [step.found for thread in test.threads for step in thread if step.found is not None]
    return " ".join(map(str, [*found, *(value for _, value in test.final)]))


def measured(runs: int, only: str) -> Iterator[str]:
    """The document after each test. HardwareError at a launch that fails or hangs; the process is to end then."""
    chosen = [each for each in litmus_tests() if each.name.startswith(only)]
    with ThreadPoolExecutor() as threads:
        codes = list(threads.map(compiled, chosen))
    info, found = require_gpu(), dict[str, dict[str, int]]()
    device = {"name": info.name, "driver": info.driver, "nvrtc": nvrtc_version(), "sms": info.sms}
    for test, code in zip(chosen, codes, strict=True):
        gpu = Gpu(info)
        found[test.name] = outcomes(gpu, test, code, runs)
        gpu.close()
        said = "forbidden" if test.forbidden else "allowed"
        print(f"{test.name:38} {said:9} {found[test.name].get(asked(test), 0):>12,}", flush=True)
        yield json.dumps({"device": device, "outcomes": found}, indent=1) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.litmus.run", description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--runs", type=int, default=10_000_000, help="of each test, at least")
    parser.add_argument("--only", default="", help="the beginning of names")
    given = parser.parse_args()
    for document in measured(given.runs, given.only):
        write_whole(given.file, document.encode(), force=True)
