"""The modes in which PyTorch multiplies on a CPU, for comparisons. It is imported only when it is used."""

from __future__ import annotations

from contextlib import AbstractContextManager

# The modes to compare with each precision of this project.
TORCH_MODES = {"float32": ("float32",), "bfloat16": ("autocast", "bf16_products")}


def computing(mode: str) -> AbstractContextManager[object]:
    """Return a context for forward passes in one of TORCH_MODES.

    "bf16_products", float32 tensors that are multiplied in bfloat16, holds for the whole process, backward passes
    included. "autocast" also stores the results of products in bfloat16.
    """
    import torch

    if mode == "bf16_products":
        torch.backends.mkldnn.matmul.fp32_precision = "bf16"
    return torch.autocast("cpu", torch.bfloat16, enabled=mode == "autocast")


def multiplies_in_bfloat16(mode: str) -> bool:
    """Return whether products in a mode are made in bfloat16; without AMX, oneDNN makes "bf16_products" in float32."""
    import torch

    with computing(mode):
        numbers = torch.full((256, 256), 1 + 2**-12)  # 1 in bfloat16
        return float((numbers @ numbers)[0, 0]) == 256


def mode_shown(mode: str, in_bfloat16: bool) -> str:
    """Return the mode for a table, with a note if it is no different from float32 on this processor."""
    return mode if mode == "float32" or in_bfloat16 else f"{mode} (float32 on this processor)"
