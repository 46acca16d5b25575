"""Kernels for CPUs in place of Paddle's: those of oneDNN, and some that Numba compiles. GPUs use neither."""
