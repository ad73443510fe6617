"""Litmus tests as small kernels of PTX, as a question to pipesim: a load that the outcome waits for is a loop."""

from collections.abc import Iterator

from pipesim.ptx.extract import extract
from pipesim.ptx.launch.values import Launch, Parameter, Pointer
from pipesim.ptx.text.read import read_module
from pipesim.targets import Target
from tests.litmus.table import WORDS, Litmus, LitmusStep

_HEAD = """.version 8.6
.target sm_90a
.address_size 64
.visible .entry litmus(.param .u64 x, .param .u64 y, .param .u64 z, .param .u64 out)
{{ .reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %rd<8>;
.shared .align 16 .b8 slot[64]; .shared .align 8 .b8 m[8]; .shared .align 8 .b8 done[32];
ld.param.u64 %x, [x]; ld.param.u64 %y, [y]; ld.param.u64 %z, [z]; ld.param.u64 %out, [out];
mov.u32 %r1, %ctaid.x; mov.u32 %r2, %tid.x; and.b32 %r3, %r2, 31; shr.u32 %r2, %r2, 5; setp.ne.u32 %p1, %r3, 0;
{init}"""
_INIT = """setp.ne.u32 %p2, %r2, 0; @%p1 bra ready; @%p2 bra ready;
mbarrier.init.shared::cta.b64 [m], 1;
ready: bar.sync 1;
"""
_BULK = {
    "bulk.ld": """mbarrier.arrive.expect_tx.shared::cta.b64 _, [done+{d}], 16;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [slot+{s}], [{a}], 16, [done+{d}];
{n}: mbarrier.try_wait.parity.shared::cta.b64 %p2, [done+{d}], 0; @!%p2 bra {n};
ld.shared.u32 %r5, [slot+{s}];""",
    "bulk.st": """mov.u32 %r6, 1; st.shared.v4.u32 [slot+{s}], {{%r6, %r6, %r6, %r6}}; fence.proxy.async.shared::cta;
cp.async.bulk.global.shared::cta.bulk_group [{a}], [slot+{s}], 16; cp.async.bulk.commit_group;""",
}
_WAITS = {"st": "cp.async.bulk.wait_group 0;", "read": "cp.async.bulk.wait_group.read 0;", "none": ""}


def target(test: Litmus) -> Target:
    """The kernel of a test: each CTA has as many warps as it has threads of the test, the first lane does it all."""
    warps = max(test.ctas.count(each) for each in test.ctas)
    ctas = max(test.ctas) + 1
    given = tuple(Parameter(name, Pointer()) for name in (*WORDS, "out"))
    cluster = (ctas, 1, 1) if test.cluster else (1, 1, 1)
    block = 32 * warps if warps > 1 else 1
    launch = Launch("litmus", (ctas, 1, 1), (block, 1, 1), cluster=cluster, parameters=given)
    made = extract(read_module(kernel(test), f"{test.name}.ptx"), launch)
    return Target(test.name, None, made.program, {}, "", kernel=made)


def kernel(test: Litmus) -> str:
    """The PTX of a test."""
    used = {step.parts[0] for thread in test.threads for step in thread}
    text = _HEAD.format(init=_INIT if "arrive" in used else "")
    for n, cta in enumerate(test.ctas):
        at = test.ctas[:n].count(cta)
        text += f"setp.eq.u32 %p2, %r1, {cta}; setp.eq.and.u32 %p2, %r2, {at}, %p2; @%p2 bra T{n};\n"
    text += "ret;\n"
    for n, thread in enumerate(test.threads):
        text += f"T{n}:\n" + "\n".join(_lines(n, thread)) + "\nret;\n"
    for number, name in enumerate((*WORDS, "out"), 1):
        text = text.replace(f"%{name}", f"%rd{number}")
    return text + "}\n"


def _lines(n: int, thread: tuple[LitmusStep, ...]) -> Iterator[str]:
    if any(step.opcode == "bulk.ld" for step in thread):
        yield f"@%p1 bra E{n}; mbarrier.init.shared::cta.b64 [done+{8 * n}], 1; fence.mbarrier_init.release.cluster;"
        yield f"E{n}:"
    for k, step in enumerate(thread):
        together = step.parts[0] in ("bar", "cbar")
        if not together:
            yield f"@%p1 bra A{n}_{k};"
        word, offset = step.place
        yield from _instruction(step, f"L{n}_{k}", f"%{word}+{offset}", n)
        if step.found is not None and step.size == 4:
            yield f"st.global.u32 [%out+{32 * n + 4 * k}], {_result(step)};"
        if not together:
            yield f"A{n}_{k}:"


def _instruction(step: LitmusStep, label: str, address: str, n: int) -> Iterator[str]:
    kind = step.parts[0]
    if kind == "bulk":
        yield _BULK[".".join(step.parts[:2])].format(n=label, a=address, s=16 * n, d=8 * n)
        yield _WAITS.get(step.parts[-1], "")
    elif kind == "arrive":
        order = ".relaxed.cta" if "relaxed" in step.parts else ""
        yield f"mbarrier.arrive{order}.shared::cta.b64 _, [m];"
    elif kind == "mwait":
        order = ".relaxed.cta" if "relaxed" in step.parts else ""
        yield f"{label}: mbarrier.try_wait.parity{order}.shared::cta.b64 %p2, [m], 0; @!%p2 bra {label};"
    else:
        wide = step.size == 8
        result = "{%r5, %r6}" if "v2" in step.parts else "%rd5" if wide else _result(step)
        yield f"{label}: {step.ptx(result, address, '%r5')}"
        if step.waits:
            yield f"setp.ne.u{64 if wide else 32} %p2, {result}, {step.waits_for}; @%p2 bra {label};"


def _result(step: LitmusStep) -> str:
    """The register of what it returns: what is waited for is not that of data, so that it decides nothing else."""
    return "%r7" if step.waits else "%r5"
