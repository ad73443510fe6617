"""What a check of a folder, a program or a library answers: a row for each of its kernels."""

from dataclasses import dataclass


@dataclass(frozen=True)
class KernelRow:
    """A kernel in one launch, which a file says (``launch``), or what of it is guessed. ``guessed``: of that, what may
    decide a verdict: not that a CTA has all shared memory. ``title``: its name without a
    compiler's letters. ``verdict``: "" where none was asked for, or possible; ``said`` says it, or why. ``needs``:
    options that give what is missing for one. ``exit_code``: of a check of this kernel alone.
    """

    name: str
    title: str
    origin: str
    arch: str
    mbarriers: bool
    launch: str = ""
    said: str = ""
    verdict: str = ""
    needs: tuple[str, ...] = ()
    exit_code: int = 0
    guessed: str = ""
