"""The tables of all twins: of which protocols they are made, with which values of their parameters, and how spelled.

``python tools/tables.py`` writes them. A twin of this package is described by its :class:`~hwkernels.twins.twin.Twin`;
those that only Blackwell can run are described here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hwkernels.device.sources import TWINS
from hwkernels.recorder.table_file import Spelling, Values, Variant, table_text, variants_of
from hwkernels.twins import REGISTRY
from hwkernels.twins.twin import Params, Twin
from pipesim.errors import ParameterError
from pipesim.model.program import Program
from pipesim.targets import find
from pipesim.trace.sites import site_table


@dataclass(frozen=True)
class TableSource:
    """What a table is made of.

    ``settings``: parameters of the protocol, the usual ones first. ``vary``: those that the kernel has any value of.
    ``check``: raises for parameters that the kernel does not have. ``macros``: of the kernel, for some parameters.
    """

    path: Path
    protocol: str
    settings: tuple[Params, ...]
    vary: Collection[str]
    macros: Callable[[Params], Values]
    spelling: Spelling
    check: Callable[[Params], None] = lambda _params: None

    def text(self) -> str:
        """The text of the file."""
        first, *others = [find(self.protocol).defaults | dict(setting) for setting in self.settings]
        variants = variants_of(self._build, self.macros, first, self.vary)
        variants += [Variant(self.macros(params), site_table(self._build(params))) for params in others]
        return table_text(variants, replace(self.spelling, head=(*_head(self.protocol), *self.spelling.head)))

    def _build(self, params: Params) -> Program:
        self.check(params)
        return find(self.protocol).build(params, twice=False)


def _head(protocol: str) -> tuple[str, ...]:
    return (
        f"Made by tools/tables.py from the protocol {protocol}: do not edit. table.cuh makes enums of it for the",
        "kernel, table.py parses it for the host. No include guard: it is included once for each kind of entry.",
    )


def sources() -> tuple[TableSource, ...]:
    """Every table of this package, in the order of their names."""
    return tuple(sorted((*map(_of_twin, REGISTRY.values()), *_blackwell()), key=lambda source: source.path.name))


def _of_twin(twin: Twin) -> TableSource:
    settings = tuple({repr(sorted(r.params.items())): r.params for r in twin.recorded}.values())
    spelling = _SPELLINGS.get(twin.name, Spelling())
    return TableSource(twin.table_file, twin.name, settings, tuple(twin.ranges), twin.defines, spelling, twin.check)


_SPELLINGS = {
    # The order of the traces that are stored: the site came before those of the residual once.
    "epilogue_residual": Spelling(after={"epilogue_arrive_output_empty": "epilogue_got_output_full"}),
}


def _macros(names: Mapping[str, str]) -> Callable[[Params], Values]:
    """The macros of these names by the parameters; RING_STAGES counts groups of slots."""

    def of(params: Params) -> Values:
        values = {macro: params[name] for name, macro in names.items()}
        if "RING_STAGES" in values:
            values["RING_STAGES"] //= params.get("k_group_size", 1)
        return values

    return of


#: What the kernels of one SM have of the parameters that choose a cluster, a pair or a further warp.
_ONE_SM = {"cta_group": {1}, "cluster_m": {0, 1}, "cluster_n": {1}, "epilogue_load": {0}, "lookahead": {0}}


def require_one_sm(name: str) -> Callable[[Params], None]:
    """A check that raises ParameterError for a parameter of the protocol that its kernel ``name`` does not have."""

    def check(params: Params) -> None:
        for parameter, values in _ONE_SM.items():
            if params.get(parameter, min(values)) not in values:
                raise ParameterError(
                    f"{name}.cu does not have {parameter} = {params[parameter]}",
                    cause="the kernel runs on one SM, without lookahead and without an epilogue load",
                    correction=f"use {parameter} = {min(values)}; `pipesim check {name}` takes any",
                )

    return check


_SHARED = {"stages": "RING_STAGES", "accumulators": "ACCUMULATORS", "clc_stages": "CLC_STAGES"}
_ATTENTION = {name: name.upper() for name in ("kv_stages", "qk_stages", "pv_stages")}
_CUTLASS = {"mainloop": "input", "accum": "output"}
_CUTLASS_GROUPS = {f"{name}.{side}": f"{mine}_{side}" for name, mine in _CUTLASS.items() for side in ("full", "empty")}
_SPLIT: tuple[Params, ...] = (
    {"fused": 0, "qk_stages": 2, "kv_stages": 2},
    {"fused": 0, "qk_stages": 1, "kv_stages": 2},
    {"fused": 0, "qk_stages": 1, "kv_stages": 4, "pv_stages": 1, "depth": 64, "block_n": 64},
)
_OF_STAGE_0 = ("The counts of S0_cons and S1_cons are those of stage 0; the others take 128.",)


def _blackwell() -> tuple[TableSource, ...]:
    """The tables of the kernels that only Blackwell can run."""

    def of(name: str, macros: Mapping[str, str], *settings: Params, **spelling: Any) -> TableSource:
        suffix = "_split" if settings and not settings[0].get("fused", 1) else ""
        path = TWINS / "blackwell" / f"{name}{suffix}.table.h"
        check = require_one_sm(name)
        return TableSource(path, name, settings or ({},), tuple(macros), _macros(macros), Spelling(**spelling), check)

    return (
        of("gemm_sm100", _SHARED, {}, {"k_group_size": 2, "stages": 4}),
        of("conv_epilogue", _SHARED | {"epi_stages": "EPI_STAGES"}, {}, {"first_tile_only": 1}),
        of("cutlass_sm100", _SHARED, groups=_CUTLASS_GROUPS),
        of("gemm_sm100_blockwise", _SHARED),
        of("attention_sm100", _ATTENTION, {}, {"kv_stages": 2, "pv_stages": 4}, head=_OF_STAGE_0),
        of("attention_sm100", _ATTENTION, *_SPLIT, head=_OF_STAGE_0),
    )
