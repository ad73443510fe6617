"""Everything that touches CUDA: the kernels, their compiler, the launch, and the recorder on both of its sides.

Importing any module of this package needs neither CUDA, a driver, a GPU nor SimPy; what needs them says so when called.
"""
