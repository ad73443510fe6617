"""Mangled names of kernels are read with the template arguments that tell them apart."""

import pytest

from pipesim.ptx.names.paths import kernel_name

GEMM = (
    "_ZN7cutlass13device_kernelINS_4gemm6kernel13GemmUniversalIN4cute5tupleIJiiiiEEENS1_10collective13CollectiveMma"
    "INS1_19MainloopSm90TmaGmmaILi7ENS5_IJNS4_1CILi2EEENSA_ILi1EEESC_EEELi1EEENS5_IJNSA_ILi128EEESF_NSA_ILi64EEEEEE"
    "NS_6half_tEEEEEEEvNT_6ParamsE"
)
NAMES = {
    GEMM: "cutlass::device_kernel<GemmUniversal<CollectiveMma<MainloopSm90TmaGmma<7, <2, 1, 1>, 1>, <128, 12...",
    "_Z6kernelPf": "kernel",
    "matmul_kernel": "matmul_kernel",
    "_Z3addIfLb1ELin3EEvPT_": "add<float, true, -3>",
    "_Z3addIPKN2ns1AESt4pairIS1_S2_EJfdEEvv": "add<A*, pair<A, A>, float, double>",
    "_Z3addIRA4_iEvv": "add",  # an array is not read
    "_ZN2ns3addIXadL_Z1fvEEEEvv": "ns::add",
    "_Z3addIS9_Evv": "add",  # refers to nothing
    "_Z9add": "_Z9add",
    f"_Z3addI{'P' * 5000}iEvv": "add",
    "k" * 5000: "k" * 117 + "...",
}


@pytest.mark.parametrize("mangled", NAMES, ids=lambda name: name[:40])
def test_a_kernel_has_the_name_of_the_source(mangled: str) -> None:
    said = NAMES[mangled]
    assert kernel_name(mangled, arguments=True) == said
    assert kernel_name(mangled) == said.partition("<")[0]
