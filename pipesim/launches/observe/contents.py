"""Which memory a kernel's control flow depends on: the pointers whose contents are copied at the launch."""

from __future__ import annotations

from pipesim.errors import PipesimError

MOST = 1 << 16  #: bytes that are copied from one pointer on


def pointers_wanted(text: bytes, kernel: str) -> frozenset[tuple[int, int]]:
    """(parameter, offset in it) of each pointer to words that decide about the kernel's synchronisation.

    Empty for PTX that cannot be read, which the report will say.
    """
    from pipesim.ptx.emulation import entry_of
    from pipesim.ptx.flow.inline import inlined
    from pipesim.ptx.flow.slice import Need, slice_of
    from pipesim.ptx.launch.values import Launch
    from pipesim.ptx.text.read import read_module

    try:
        module = read_module(text.decode(errors="replace"), kernel, kernel)
        function = inlined(module, entry_of(module, Launch(kernel, (1, 1, 1), (32, 1, 1))))
        wanted = slice_of(function).wanted
    except (PipesimError, RecursionError):
        return frozenset()
    return frozenset(
        (number, each.offset - formal.offset)
        for each in wanted
        if each.need is Need.MEMORY
        for number, formal in enumerate(function.params)
        if formal.offset <= each.offset < formal.offset + formal.size
    )
