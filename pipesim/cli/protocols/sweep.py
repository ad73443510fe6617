"""``pipesim sweep``: a protocol at many parameters, ranked by simulated time."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING

from pipesim.cli import arguments as given
from pipesim.cli.completers import protocols
from pipesim.cli.output import progress, remark, show_report
from pipesim.errors import ParameterError, UsageError

if TYPE_CHECKING:
    from pipesim.answers.sweep.sweep import Sweep, Where
    from pipesim.answers.views.sweep import SweepReport

METRICS = ("auto", "period", "run", "throughput")
_WHOLE = re.compile(r"[+-]?[0-9]{1,20}")
_RANGE = re.compile(r"([+-]?[0-9]{1,20})\.\.([+-]?[0-9]{1,20})(?::([0-9]{1,20}))?")
_MOST_VALUES = 100_000  #: of one parameter


def _arguments(parser: argparse.ArgumentParser) -> None:
    named = parser.add_argument("protocol", help="a built-in name (see `pipesim list`), file.py or file.py:function")
    given.complete(named, protocols)
    text = "a parameter and its values: 2..8 (2 to 8), 16..64:16 (in steps of 16), 64,128,256, or one; may be repeated"
    given.add_params(parser, text, "NAME=VALUES")
    given.add_ctas(parser)
    given.add_profile(parser)
    parser.add_argument(
        "--by", choices=METRICS, default="auto",
        help="rank by cycles an iteration (period), cycles of the whole run (run), or work in the time of the run "
        "(throughput); auto, the default, takes the first of them that can be compared, and says which",
    )  # fmt: skip
    text = "how far from the best the smallest configuration may be (default 1)"
    given.add_value(parser, "--within", "PERCENT", text, given.percentage, 1.0)
    given.add_flag(parser, "--no-proof", "only simulate: what is ranked may be wrong")
    given.add_value(parser, "--max-states", "N", "of the search for one proof (default 20,000)", int)
    given.add_value(parser, "--max-steps", "N", "operations of one simulation (default 2,000,000)", int)
    given.add_jobs(parser, "processes (default: as many as there are processors)")
    text = "compute on the Dask cluster of this scheduler, such as tcp://10.0.0.1:8786"
    given.add_value(parser, "--dask", "ADDRESS", text)
    given.add_value(parser, "--results", "FILE", "keep every answer in this file, and continue it if it is there", Path)
    given.add_value(parser, "--svg", "FILE", "write the plot as a picture", Path)
    given.add_value(parser, "--csv", "FILE", "write all configurations as a table", Path)
    given.add_strict(parser)
    given.add_force(parser)


def _carry_out(options: argparse.Namespace) -> int:
    _check(options)

    from pipesim.answers.sweep.sweep import sweep
    from pipesim.cli.output import TerminalProgress
    from pipesim.report.pages.protocols.sweep import sweep_lines

    asked = _sweep_request(options)
    report = sweep(asked, _where(options), TerminalProgress())
    _write_files(options, report)
    return show_report(options, report, sweep_lines)


def _sweep_request(options: argparse.Namespace) -> Sweep:
    from pipesim.answers.sweep.measure import MOST_STATES, MOST_STEPS
    from pipesim.answers.sweep.sweep import Sweep
    from pipesim.answers.views.sweep import Metric
    from pipesim.protocol_process import find
    from pipesim.timed.profile import load_profile

    values = values_of(options.param)
    with progress(f"flattening {options.protocol}"):
        target = find(options.protocol).with_strictness(given.strictness_of(options))
    return Sweep(
        target=target,
        axes={name: several for name, several in values.items() if len(several) > 1},
        fixed={name: several[0] for name, several in values.items() if len(several) == 1},
        profile=load_profile(options.profile or "h100"),
        ctas=options.ctas,
        metric=None if options.by == "auto" else Metric[options.by.upper()],
        prove=not options.no_proof,
        max_states=MOST_STATES if options.max_states is None else options.max_states,
        max_steps=MOST_STEPS if options.max_steps is None else options.max_steps,
        within_permille=round(10 * options.within),
        profile_given=options.profile or "h100",
    )


def _where(options: argparse.Namespace) -> Where:
    from pipesim.answers.spread import processors
    from pipesim.answers.sweep.sweep import Where

    cluster = None
    if options.dask is not None:
        from pipesim.answers.sweep.dask_cluster import DaskCluster

        cluster = DaskCluster(options.dask)
    return Where(options.jobs or processors(), cluster, options.results)


def _write_files(options: argparse.Namespace, report: SweepReport) -> None:
    """The plot and the table; not of a part, so that the same command finds their names free."""
    left = [str(path) for path in (options.svg, options.csv) if path is not None]
    if report.interrupted:
        whole = f"the same command continues {options.results}, and writes them"
        if options.results is None:
            whole = "the sweep is not complete; with --results FILE the same command continues it"
        if left:
            remark(f"not written: {' and '.join(left)}; {whole}")
        return

    if options.svg is not None:
        from pipesim.report.pictures.sweep_svg import sweep_svg

        _write(options, options.svg, sweep_svg(report).encode())
    if options.csv is not None:
        from pipesim.formats.documents import sweep_csv

        _write(options, options.csv, sweep_csv(report).encode())


def _write(options: argparse.Namespace, path: Path, data: bytes) -> None:
    """Write an output; one that the same command has left, which was interrupted after it, is there already."""
    from pipesim.process.files import write_whole

    is_there = options.results is not None and path.is_file() and path.stat().st_size == len(data)
    if not (is_there and path.read_bytes() == data):
        write_whole(path, data, force=options.force)


def values_of(params: list[str]) -> dict[str, tuple[int, ...]]:
    """The ``-p NAME=VALUES`` of a sweep; ParameterError for one that is malformed or given twice."""
    found: dict[str, tuple[int, ...]] = {}
    for text in params:
        name, equals, values = text.partition("=")
        if not equals or not name:
            raise ParameterError(
                f"-p {text}: expected NAME=VALUES", correction=f"for example -p {name or 'stages'}=2..8"
            )
        if name in found:
            raise ParameterError(
                f"{name} is given more than once", correction=f"give all values together: {name}=2,4,8"
            )
        found[name] = tuple(value for part in values.split(",") for value in _part(name, part))
    return found


def _part(name: str, text: str) -> tuple[int, ...]:
    """The values of one part: a whole number, or a range with both ends."""
    if _WHOLE.fullmatch(text):
        return (int(text),)
    found = _RANGE.fullmatch(text)
    if found is None:
        raise ParameterError(
            f"{name} takes whole numbers and ranges, not {text!r}",
            correction=f"for example -p {name}=2..8, -p {name}=16..64:16 or -p {name}=64,128,256",
        )
    first, last, step = int(found[1]), int(found[2]), int(found[3] or 1)
    if first > last or step < 1:
        raise ParameterError(f"the range {text} of {name} has no value", correction=f"for example -p {name}=2..8")
    if (last - first) // step >= _MOST_VALUES:
        raise ParameterError(
            f"the range {text} of {name} has more than {_MOST_VALUES:,} values", correction="give it a step: 0..1024:64"
        )
    return tuple(range(first, last + 1, step))


def _check(options: argparse.Namespace) -> None:
    """Everything that can be said about the line before any work."""
    given.require_positive(options, "jobs", "max_states", "max_steps")
    if options.dask is not None and options.jobs is not None:
        raise UsageError("--jobs and --dask cannot be combined", cause="a cluster has its own processes")
    if options.no_proof and options.max_states is not None:
        raise UsageError("--max-states limits the proof, and --no-proof leaves it out", correction="give only one")
    files = [path for path in (options.svg, options.csv, options.results) if path is not None]
    if len(set(files)) < len(files):
        raise ParameterError("two of --svg, --csv and --results name the same file")
    continued = options.results is not None and options.results.exists()  # what is there may be of the same command
    for path in (options.svg, options.csv):
        if path is not None:
            given.require_output(path, force=options.force or continued)
    if options.results is not None:
        given.require_output(options.results, force=True)


COMMAND = given.Command(
    "sweep",
    "simulate a protocol at many parameters: the best, the smallest, what limits each",
    "Prove and simulate every combination of the given values, on all processors or on a Dask cluster, and rank them. "
    "Configurations that are refused, not correct or do not finish are listed with the reason.",
    _arguments,
    _carry_out,
    (
        ("pipesim sweep producer_consumer -p stages=2..8", "how many stages are enough"),
        (
            "pipesim sweep gemm_sm90 -p stages=2..8 -p block_n=64,128,256 --results gemm.jsonl --svg gemm.svg",
            "every combination; continued from gemm.jsonl if it was interrupted",
        ),
    ),
)
