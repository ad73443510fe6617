"""The bits of a record and the structures around it are the same for the host and in ``recorder.cuh``."""

import pytest

from hwkernels.device.compile import compile_cubin
from hwkernels.device.sources import headers, source_file
from hwkernels.records import encodings as form2
from hwkernels.records.clocks import ANCHOR
from hwkernels.records.encodings import full_tag
from hwkernels.source_recorder import record_format as form
from hwkernels.source_recorder.description import lap_sites, wait_sites
from hwkernels.source_recorder.layout import HEADER, LAUNCH, MAX_AGENTS, MAX_BARRIERS, MAX_REPORTED_AGENTS, REPORT
from hwkernels.twins import REGISTRY
from pipesim.targets import find

FIELDS = {name: getattr(form, name) for name in dir(form) if name.startswith("TAG_")}
LAST_STAGE = (form.MAX_STAGES - 1) << form.TAG_STAGE[0]
CLAIMS = [
    f"PIPESIM_FULL_FLAGS == {form2.FULL_FLAGS[0]}",
    f"PIPESIM_FULL_SEQUENCE == {form2.FULL_SEQUENCE[0]}",
    *(f"PIPESIM_FLAG_{flag.name} == {flag.value}" for flag in form2.Flag),
    f"PIPESIM_HASH_FACTOR == {form2.HASH_FACTOR}",
    f"PIPESIM_FIRST_BLOCK == {form2.FIRST_BLOCK}",
    *(f"PIPESIM_{name} == {shift}" for name, (shift, _) in FIELDS.items() if shift),
    f"sizeof(PipesimAnchor) == {ANCHOR.itemsize}",
    f"sizeof(PipesimCta) == {HEADER.itemsize}",
    f"sizeof(PipesimLaunch) == {LAUNCH.itemsize}",
    f"sizeof(CtaReport) == {REPORT.itemsize}",
    f"PIPESIM_MAX_AGENTS == {MAX_AGENTS}",
    f"MAX_REPORTED_AGENTS == {MAX_REPORTED_AGENTS}",
    f"MAX_REPORTED_BARRIERS == {MAX_BARRIERS}",
    # a stage and a parity that are too large do not reach into their neighbours
    f"PIPESIM_PLACE({form.MAX_STAGES}, 2) == 0",
    f"PIPESIM_PLACE({form.MAX_STAGES - 1}, 1) == {LAST_STAGE | 1 << form.TAG_PARITY[0]}",
]


def compiled(folder, claims, includes="", **defines):
    for header in headers():
        (folder / header.name).write_bytes(header.read_bytes())
    source = folder / "claims.cu"
    asserts = "\n".join(f'static_assert({claim}, "{claim}");' for claim in claims)
    source.write_text(f'{includes}#include "report.cuh"\n{asserts}\nextern "C" __global__ void claims() {{}}\n')
    return compile_cubin(source, {"PIPESIM_TRACE": 1, **defines})


def test_the_header_has_the_same_numbers(tmp_path):
    compiled(tmp_path, CLAIMS)
    for clock, number in form.CLOCKS.items():
        compiled(tmp_path, [f"PIPESIM_RECORD_BYTES == {4 * form.RECORD_WORDS[clock]}"], PIPESIM_CLOCK=number)


def test_the_header_has_the_same_numbers_with_every_encoding(tmp_path):
    for encoding in form2.Encoding:
        size = 4 * form.record_words(encoding, "clock")
        compiled(tmp_path, [f"PIPESIM_RECORD_BYTES == {size}"], PIPESIM_ENCODING=int(encoding))
    parity = full_tag(0, form2.Flag.PARITY, 0)
    compiled(tmp_path, [f"PIPESIM_PLACE(31, 3) == {parity}", "PIPESIM_PLACE(31, 2) == 0"], PIPESIM_ENCODING=1)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("twin", REGISTRY.values(), ids=lambda twin: twin.name)
def test_the_kernel_knows_the_same_sites_of_waits_and_laps(tmp_path, twin):
    params = find(twin.name).defaults
    table = twin.table(params)
    masks = {"WAIT_SITES": wait_sites(table), "LAP_SITES": lap_sites(table)}
    claims = [f"{name} == {sum(1 << site for site in sites)}ull" for name, sites in masks.items()]
    includes = f'#define PIPESIM_TABLE "{twin.table_file.name}"\n#include "table.cuh"\n'
    compiled(tmp_path, claims, includes, **twin.defines(params))


def test_the_headers_words_say_the_same():
    text = source_file("recorder.cuh").read_text(encoding="utf-8")
    assert f"site: 0..{form.MAX_SITES - 1}, value: 0..{form.MAX_VALUE};" in text
    names = ("site", "value", "parity", "stage", "low bits of the iteration")
    widths = [FIELDS[f"TAG_{name.split()[-1].upper()}"][1] for name in names]
    said = ", ".join(
        f"{name} ({width}{' bits' if name == 'site' else ''})" for name, width in zip(names, widths, strict=True)
    )
    assert f"from bit 0: {said}." in text
