"""Write docs/kernels.md from what is stored in ``traces``: the recordings, and the measurements beside the libraries.

``python tools/kernels_doc.py [--check]``. With ``--check`` nothing is written, and the exit code is 1 if the page is
not what the stored files say.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from hwkernels.twins import REGISTRY
from pipesim.model.ending import Ending
from pipesim.trace.library import StoredTrace, stored_traces

ROOT = Path(__file__).resolve().parents[1]
PAGE, TRACES = ROOT / "docs" / "kernels.md", ROOT / "traces"
CHIPS = ("h100", "h200")

INTRODUCTION = """\
# The kernels on H100 and H200

{All} protocols have a CUDA kernel here (`hwkernels/twins`, C++ with inline PTX, no library) that was recorded on both
GPUs{alone}. This page covers the {useful} that compute a useful
result; the other pages use `producer_consumer` throughout. It is written by `python tools/kernels_doc.py` from the
files in `traces`; do not edit it by hand. What the recordings show about the SM clock is in [hopper.md](hopper.md);
each recording has a line in [traces](../traces/README.md).

## What was recorded

Each configuration was launched five times with its recorder and five times without, in turn (upstream's order of the
loads, see below, once). After each launch that ended all outputs were compared with float64 on random inputs: no
element was wrong. Each trace conforms to its protocol (`tests/conform/replay/test_stored_traces.py`), but for the
hangs. The error is absolute, the largest of any element in any launch; `gemm_sm90` rounds its results to bf16, where
half a step of a number from 128 to 256 is 0.5. What recording adds is per tile, or block of keys and values: from the
least to the most over the configurations. A negative number says that the recorded launches were faster.

"""

GEMM = """\
## The GEMM compared with cuBLAS

C = A·Bᵀ in bf16 with fp32 sums, {size}³, random inputs, without the recorder; launches alternate with cuBLAS
(`torch.matmul`), medians of CUDA events (November 2026). The percentage is relative to the speed of
cuBLAS in the same alternation, which follows it. The relative error is that of 48 rows of C against float64.

"""

ATTENTION = """\
## Attention compared with PyTorch

Forward, bf16, {heads} heads of {length} queries and keys, without a mask; medians of CUDA events, all alternating
(November 2026). The relative error is against float64.

"""

ORDER = """\
## The order that can be missed

`epilogue_residual` with `first_tile_only=1` makes the load warp order the epilogue-load warp once, as in CUTLASS; with
`first_tile_only=0` once per tile, as in upstream's kernels. Then the load warp does not wait for the other: it can
arrive twice before the other warp looks, and a wait by parity misses both phases. `pipesim check epilogue_residual -p
first_tile_only=0` finds such a schedule, and the hardware runs it. Number of launches (out of {launches}) that timed
out ({tiles} tiles; late: the epilogue spins {late} cycles per slice, or the epilogue-load warp per tile; measured
in November 2026):

"""

AFTER_ORDER = """\
With one or two K steps per tile every launch hangs even if no warp is late, with three some do. With four or more, and
no warp late, every launch finished: a test of such a kernel detects nothing. The recorder does not cause the hang; with
three steps it makes it certain. No launch that finished left a wrong tile. The recorded hangs are in `traces`: the
model, replaying the records, blocks in the same waits, and its barrier words are those that the kernel left
(`tests/conform/replay/test_load_order.py`):

```
pipesim verify epilogue_residual -p first_tile_only=0 -p tiles=8 -p k_iters=1
```

"""

BLACKWELL = """\
## Blackwell

Only Blackwell has `tcgen05`, tensor memory and cluster launch control, and no Blackwell GPU was at hand: of its
protocols there are no kernels of ours and no traces. They are compared with the PTX of public kernels, barrier by
barrier ([kernels in the wild](kernels-in-the-wild.md#modulars-kernels-beside-our-protocols)).
"""

Row = tuple[str, ...]
#: Those that compare elements; the page on Hopper has the numbers of producer_consumer.
KERNELS = sorted(set(REGISTRY) - {"producer_consumer"})


def page() -> str:
    """The whole page."""
    stored = [trace for trace in stored_traces(TRACES) if trace.meta.protocol in KERNELS]
    head = ("kernel", "device", "traces", "records", "hung", "elements compared", "largest error", "recording adds")
    parts = [_introduction(stored), _table(head, _recorded(stored))]
    gemm, attention, order = (_read(name) for name in ("gemm_speed", "attention_speed", "load_order"))
    names = [str(said["device"]) for said in gemm]
    parts += [GEMM.format(size=f"{gemm[0]['size']:,}"), _table(("configuration", *names, "error"), _gemm(gemm))]
    shape = {key: f"{attention[0][key]:,}" for key in ("heads", "length")}
    parts += [ATTENTION.format(**shape), _table(("depth", "by", *names, "error"), _attention(attention))]
    cases = order[0]["cases"]
    late = max(max(case["params"].values()) for case in cases)
    numbers = {"launches": cases[0]["launches"], "tiles": cases[0]["params"]["tiles"], "late": f"{late:,}"}
    kinds = tuple(f"{name}, {kind}" for name in names for kind in ("plain", "recorded"))
    parts += [
        ORDER.format(**numbers),
        _table(("order", "K steps", "late", *kinds), _order(order)),
        AFTER_ORDER,
        BLACKWELL,
    ]
    return "".join(parts).rstrip() + "\n"


def _read(name: str) -> list[dict[str, Any]]:
    return [json.loads((TRACES / chip / f"{name}.json").read_text(encoding="utf-8")) for chip in CHIPS]


def _table(head: Row, rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(row) + " |" for row in (head, tuple("---" for _ in head), *rows)]
    return "\n".join(lines) + "\n\n"


def _introduction(stored: list[StoredTrace]) -> str:
    """How many kernels there are, and which of them were not recorded on every GPU."""
    devices = {name: {t.meta.device.name for t in stored if t.meta.protocol == name} for name in KERNELS}
    every = set.union(*devices.values())
    alone = [f"`{name}` on the {', '.join(found)} alone" for name, found in devices.items() if found != every]
    numbers = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
    return INTRODUCTION.format(
        All=numbers[len(REGISTRY)].capitalize(),
        useful=numbers[len(KERNELS)],
        alone="".join(f", {each}" for each in alone),
    )


def _recorded(stored: list[StoredTrace]) -> Iterable[Row]:
    for name in KERNELS:
        for device in sorted({trace.meta.device.name for trace in stored if trace.meta.protocol == name}):
            metas = [t.meta for t in stored if (t.meta.protocol, t.meta.device.name) == (name, device)]
            checked = [output for meta in metas for output in meta.extra.get("checked", {}).values()]
            assert not any(output["wrong"] for output in checked)
            elements, error = (f(o[key] for o in checked) for f, key in ((sum, "elements"), (max, "largest_error")))
            added = [a["median"] for meta in metas if (a := meta.extra.get("overhead_millicycles_per_tile"))]
            records = sum(sum(cta.written) for meta in metas for cta in meta.ctas)
            hung = sum(meta.status != Ending.FINISHED for meta in metas)
            span = f"{min(added) / 1000:,.0f} to {max(added) / 1000:,.0f} cycles".replace("-", "−")
            yield (
                f"`{name}`",
                device,
                str(len(metas)),
                f"{records:,}",
                str(hung),
                f"{elements:,}",
                f"{error:.1e}",
                span,
            )


def _gemm(said: list[dict[str, Any]]) -> Iterable[Row]:
    for runs in zip(*(each["runs"] for each in said), strict=True):
        assert all(run["params"] == runs[0]["params"] for run in runs)
        name = " ".join(f"{key}={value}" for key, value in runs[0]["params"].items())
        cells = (f"{r['us']:,.0f} µs, {r['tflops']:.0f} TFLOP/s, {100 * r['share']:.0f} % of {r['blas_tflops']:.0f}"
                 for r in runs)  # fmt: skip
        yield (f"`{name}`", *cells, f"{max(run['error'] for run in runs):.1e}")


def _attention(said: list[dict[str, Any]]) -> Iterable[Row]:
    for runs in zip(*(each["runs"] for each in said), strict=True):
        assert all((run["name"], run["depth"]) == (runs[0]["name"], runs[0]["depth"]) for run in runs)
        cells = (f"{run['median_ns'] / 1000:,.0f} µs, {run['tflops']:.0f} TFLOP/s" for run in runs)
        yield (str(runs[0]["depth"]), f"`{runs[0]['name']}`", *cells, f"{max(run['error'] for run in runs):.1e}")


def _order(said: list[dict[str, Any]]) -> Iterable[Row]:
    """A row for each configuration: plain and recorded launches stand one behind the other in the file."""
    for cases in zip(*(each["cases"] for each in said), strict=True):
        if cases[0]["traced"]:
            continue
        params = cases[0]["params"]
        order = "first tile" if params["first_tile_only"] else "every tile"
        late = " ".join({"epilogue": "epilogue", "order_delay": "epilogue load"}.get(key, "") for key in params).strip()
        hung = [str(_case(each, params, traced=traced)["hung"]) for each in said for traced in (False, True)]
        yield (order, str(params["k_iters"]), late or "–", *hung)


def _case(said: dict[str, Any], params: dict[str, int], *, traced: bool) -> dict[str, Any]:
    (found,) = [case for case in said["cases"] if (case["params"], case["traced"]) == (params, traced)]
    return dict(found)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="write docs/kernels.md from the stored recordings and measurements")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if the page is stale")
    options = parser.parse_args(arguments)
    text = page()
    if not options.check:
        PAGE.write_text(text, encoding="utf-8")
    elif PAGE.read_text(encoding="utf-8") != text:
        print("docs/kernels.md is stale: run python tools/kernels_doc.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
