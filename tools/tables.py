"""The tables of the twins, from their protocols: written by ``update_golden.py tables``, does nothing by itself.

A table (``hwkernels/twins/hopper/NAME.table.h``) numbers the roles, barriers and recording sites of a kernel. For a
protocol of your own: ``pipesim table file.py:function``.
"""

from hwkernels.source_recorder.table_file import Spelling, table_text, variants_of
from hwkernels.twins.twin import Params, Twin
from pipesim.model.program import Program
from pipesim.targets import find

#: Sites that stand elsewhere than in program order: the traces that are stored came before the sites of the residual.
_MOVED = {"epilogue_residual": {"epilogue_arrive_output_empty": "epilogue_got_output_full"}}


def text_of(twin: Twin) -> str:
    """The table's text, for the usual parameters and others."""

    def build(params: Params) -> Program:
        twin.check(params)
        return find(twin.name).build(params, twice=False)

    variants = variants_of(build, twin.defines, find(twin.name).defaults, tuple(twin.ranges))
    head = (
        f"Made by tools/tables.py from the protocol {twin.name}: do not edit. table.cuh makes enums of it for the",
        "kernel, table.py parses it for the host. No include guard: it is included once for each kind of entry.",
    )
    return table_text(variants, Spelling(head, after=_MOVED.get(twin.name, {})))
