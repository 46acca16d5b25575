"""What a machine with GPUs should compute, and how fast: `make gpu-check` (docs/cluster.md).

Every test here has the mark `gpu`, and is skipped without `-m gpu`. With GPU_CHECK_QUICK=1 models are small enough for
a CPU: so test_pretended.py runs them in CI, on a pretended GPU.
"""
