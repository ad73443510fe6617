"""A kernel's source, or its machine code, where its PTX is asked for: the error says how the PTX is made."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Call


@pytest.mark.parametrize("command", ["check", "run", "verify", "show"])
def test_cuda_source_is_compiled_first(call: Call, command: str) -> None:
    answer = call(command, "src/my kernel.cu")
    assert (answer.code, answer.error) == (
        2,
        [
            "pipesim: src/my kernel.cu is not PTX",
            "  probable cause: pipesim reads what a compiler made of a kernel, not its source, and no machine code",
            "  try: nvcc -arch=sm_90a -lineinfo -ptx 'src/my kernel.cu', then `pipesim new --ptx 'my kernel.ptx'`",
        ],
    )


@pytest.mark.parametrize("name", ["k.mojo", "k.cubin", "lib/k.so"])
def test_another_compiler_is_asked_for_ptx(call: Call, name: str) -> None:
    assert call("check", name).error[-1] == "  try: have its compiler write PTX, for example k.ptx"


def test_a_name_without_such_an_end_is_a_protocol_that_is_not_there(call: Call) -> None:
    assert call("check", "kernel.cuda").error[0] == "pipesim: there is no protocol 'kernel.cuda'"
