"""A kernel of a module, ready to be run with the values of one launch."""

from dataclasses import dataclass, replace

from pipesim.errors import LaunchFileError
from pipesim.ptx.emulate.code import Code
from pipesim.ptx.emulate.effects.table import effect_of
from pipesim.ptx.emulate.regions import Regions
from pipesim.ptx.flow.graph import Graph, graph_of
from pipesim.ptx.flow.inline import inline_calls
from pipesim.ptx.flow.open_results import read_on_every_way, read_too_early, used_at_once
from pipesim.ptx.flow.slice import Slice, slice_of
from pipesim.ptx.flow.uses import Uses, uses_of
from pipesim.ptx.launch.file import fit_cluster
from pipesim.ptx.launch.settings import with_settings
from pipesim.ptx.launch.values import Launch, Policies
from pipesim.ptx.text.declarations import Function, Module


@dataclass(frozen=True)
class Kernel:
    """A kernel of a module, ready to be emulated with the values of one launch."""

    module: Module
    launch: Launch
    entry: Function
    function: Function  #: the kernel with the bodies of the functions that it calls
    code: Code
    too_early: tuple[tuple[int, int], ...]  #: what writes registers late, and who reads them before the wait
    leaves_laps_out: bool = True  #: where it runs longer than is followed

    @property
    def asks_launch_control(self) -> bool:
        """Whether it takes tiles by cluster launch control."""
        return any(each.opcode == "clusterlaunchcontrol" for each in self.function.body)

    def with_setting(self, name: str, value: int) -> "Kernel":
        """The kernel in a launch with another policy, another CTA, or another value of a word of its parameters."""
        if name == "cta" or name in Policies.__dataclass_fields__:
            return replace(self, launch=self.launch.with_setting(name, value))
        return replace(self, launch=with_settings(self.launch, self.entry, [f"{name}={value}"]))


def prepare(module: Module, launch: Launch, graph: Graph | None = None, uses: Uses | None = None) -> Kernel:
    """Flow: calls replaced by bodies, and what synchronisation depends on. ``graph`` and ``uses``: if they are known.

    Raises LaunchFileError if launch and kernel do not fit.
    """
    entry = entry_of(module, launch)
    launch = fit_cluster(launch, entry)
    function = inline_calls(module, entry)
    part = slice_of(function, graph, uses, any_data=launch.any_data)
    graph, uses = graph or graph_of(function), uses or uses_of(function)
    code = _code(function, graph, uses, part)
    early = read_too_early(function, graph, uses)
    loads = [p for p, _ in early if function.body[p].opcode == "tcgen05"]
    code.loaded_at_once = frozenset(p for p in loads if used_at_once(function, graph, uses, p))
    products = [p for p, _ in early if function.body[p].opcode == "wgmma"]
    code.read_early = frozenset(p for p in products if read_on_every_way(function, graph, uses, p))
    made = Kernel(module, launch, entry, function, code, early)
    return on_global_memory(made) if launch.together or launch.inside else made


def _code(function: Function, graph: Graph, uses: Uses, part: Slice) -> Code:
    regions = Regions(function, graph, part.kept, uses, part.opaque, part.on_global)
    code = Code(function, regions, part)
    code.effect_of = effect_of
    return code


def on_global_memory(kernel: Kernel) -> Kernel:
    """The kernel with the addresses of what accesses global memory followed as well; where it stops may differ."""
    graph, uses = kernel.code.regions.graph, uses_of(kernel.function, global_memory=True)
    words = kernel.launch.inside or bool(kernel.launch.together)
    part = slice_of(kernel.function, graph, uses, global_memory=True, words=words)
    code = _code(kernel.function, graph, uses, part)
    code.loaded_at_once, code.read_early = kernel.code.loaded_at_once, kernel.code.read_early
    return replace(kernel, code=code, leaves_laps_out=False)


def entry_of(module: Module, launch: Launch) -> Function:
    """The kernel that is launched; the file's only one where the launch names none. LaunchFileError without one."""
    named, entries = launch.entry, module.entries
    entry = module.function(named) if named or len(entries) != 1 else entries[0]
    if entry is None or not entry.body:
        names = ", ".join(each.name for each in entries)
        several = f"{module.name} has {len(entries)} kernels, and the launch file names none"
        raise LaunchFileError(
            f"{module.name} has no kernel {named}".rstrip() if named or not entries else several,
            cause=f"it has {names or 'none'}",
            correction='name one as "entry" of the launch file' if entries else "give the PTX of a kernel",
        )
    return entry
