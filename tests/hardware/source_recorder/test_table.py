import shutil

import pytest

from hwkernels.device.compile import compile_cubin
from hwkernels.device.sources import source_file
from hwkernels.source_recorder.table import Table, read_table
from hwkernels.twins.hopper.producer_consumer import PRODUCER_CONSUMER
from pipesim.errors import UsageError

TABLE = PRODUCER_CONSUMER.table_file
VALUES = {"STAGES": 4, "TILE_BYTES": 1024, "CONSUMER_WARPS": 2, "ARRIVE_LANES": 32}


@pytest.mark.parametrize(
    ("line", "fact"),
    [
        ("PIPESIM_ROLE(a, 1", "not a table entry"),
        ("int x;", "not a table entry"),
        ("PIPESIM_ROLE(a)", "takes 2 arguments, not 1"),
        ("PIPESIM_ROLE(3, 1)", "'3' is not a name"),
        ("PIPESIM_ROLE(load, 1)", "role load is defined twice"),
        ("PIPESIM_ROLE(a, WARPS)", "no parameter WARPS"),
        ("PIPESIM_ROLE(a, 1 +)", "cannot evaluate '1 +'"),
        ("PIPESIM_ROLE(a, __import__('os'))", "only numbers, names"),
        ("PIPESIM_ROLE(a, 2 ** 9)", "only numbers, names"),
        ("PIPESIM_ROLE(a, STAGES - 4)", "is 0; it must be at least 1"),
        ("PIPESIM_SITE(s, store, COPY, none)", "no role store"),
        ("PIPESIM_SITE(s, load, LANDING, none)", "no kind LANDING"),
        ("PIPESIM_SITE(s, load, COPY, full)", "no barrier full"),
    ],
)
def test_a_wrong_line_is_named(tmp_path, line, fact):
    path = tmp_path / "wrong.table.h"
    path.write_text(f"// a comment\nPIPESIM_ROLE(load, 1)  // fine\n\n{line}\n")
    with pytest.raises(UsageError) as caught:
        read_table(path, VALUES)
    assert fact in caught.value.fact
    assert caught.value.place == f"{path}:4"


def test_includes_that_double_are_not_followed_to_their_end(tmp_path):
    """Each of 15 files includes the next one twice: 2**15 times the last, whose line would be read."""
    for n in range(15):
        (tmp_path / f"{n}.table.h").write_text(f'#include "{n + 1}.table.h"\n' * 2)
    (tmp_path / "15.table.h").write_text("// nothing\n")
    with pytest.raises(UsageError) as caught:
        read_table(tmp_path / "0.table.h", VALUES)
    assert caught.value.fact == "the table has more than 10,000 lines with all that it includes"
    assert caught.value.cause == "a file is included again and again"


def test_more_sites_than_a_tag_can_name(tmp_path):
    path = tmp_path / "many.table.h"
    lines = ["PIPESIM_ROLE(load, 1)", *(f"PIPESIM_SITE(s{i}, load, COPY, none)" for i in range(63))]
    path.write_text("\n".join(lines))
    assert len(read_table(path, {}).sites) == 63
    path.write_text("\n".join([*lines, "PIPESIM_SITE(s63, load, COPY, none)"]))
    with pytest.raises(UsageError, match="64 sites; a record can name 63"):
        read_table(path, {})


def _claims(table: Table) -> list[str]:
    """What the compiler's enums must be if both readers understand the file alike."""
    claims = [f"SITE_{site.name} == {number}" for number, site in enumerate(table.sites)]
    claims += [f"SITES == {len(table.sites)}", f"WARPS == {len(table.agents)}"]
    claims += [f"WARP_{a.role} == {a.warp}" for a in table.agents if a.index == 0]
    claims += [f"WARPS_{role} == {warps}" for role, warps in table.roles]
    first = 0
    for group in table.barriers:
        claims += [f"BARRIER_{group.name} == {first}", f"STAGES_{group.name} == {group.stages}"]
        claims += [f"COUNT_{group.name} == {group.count}"]
        first += group.stages
    return [*claims, f"BARRIERS == {first}"]


def _compile_claims(folder, claims):
    for header in (source_file("table.cuh"), TABLE):
        shutil.copy(header, folder)
    asserts = "\n".join(f'static_assert({claim}, "{claim}");' for claim in claims)
    source = folder / "claims.cu"
    source.write_text(
        f'#define PIPESIM_TABLE "{TABLE.name}"\n#include "table.cuh"\n{asserts}\n'
        'extern "C" __global__ void empty() {}\n'
    )
    compile_cubin(source, VALUES)


def test_the_kernel_reads_the_same_numbers(tmp_path):
    claims = _claims(read_table(TABLE, VALUES))
    assert len(claims) == 9 + 2 + 2 + 2 + 6 + 1
    _compile_claims(tmp_path, claims)
