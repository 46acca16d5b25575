"""Which parameters decay: a rule over their names, because the optimizer sees nothing else of them."""

from __future__ import annotations


def is_decayed(name: str) -> bool:
    """Return whether weight decay applies to a parameter: to matrices and embeddings, not to LayerNorm and biases.

    The filter in upstream's code is inverted.
    """
    return not (name.endswith((".b_0", "_bias")) or "layer_norm" in name)
