"""The CUDA driver and NVRTC: devices, memory, launches, compilation."""
