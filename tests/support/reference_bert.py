"""Hugging Face's BERT in numpy and float64 under its own parameter names, one sequence at a time; and such parameters.

Written from the BERT paper and the names in released files. It shares no code with the model or with the formats.
"""

from __future__ import annotations

import numpy as np
from scipy.special import softmax

from tests.support.reference_model import gelu

EPSILON = 1e-12
Arrays = dict[str, np.ndarray]


def random_bert(tokens: int, hidden: int, layers: int, inner: int, positions: int) -> Arrays:
    """Return random float32 parameters of a BertForPreTraining; matrices are [out, in]."""
    random = np.random.default_rng(3)

    def numbers(*shape: int) -> np.ndarray:
        return (0.3 * random.standard_normal(shape)).astype("float32")

    arrays = {
        "bert.embeddings.word_embeddings.weight": numbers(tokens, hidden),
        "bert.embeddings.position_embeddings.weight": numbers(positions, hidden),
        "bert.embeddings.token_type_embeddings.weight": numbers(2, hidden),
        "cls.predictions.bias": numbers(tokens),
        "cls.seq_relationship.weight": numbers(2, hidden),
        "cls.seq_relationship.bias": numbers(2),
        "bert.embeddings.position_ids": np.arange(positions)[None],
    }
    linear = {"bert.pooler.dense": (hidden, hidden), "cls.predictions.transform.dense": (hidden, hidden)}
    norms = ["bert.embeddings.LayerNorm", "cls.predictions.transform.LayerNorm"]
    for i in range(layers):
        layer = f"bert.encoder.layer.{i}"
        for name in ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"):
            linear[f"{layer}.{name}"] = (hidden, hidden)
        linear[f"{layer}.intermediate.dense"] = (inner, hidden)
        linear[f"{layer}.output.dense"] = (hidden, inner)
        norms += [f"{layer}.attention.output.LayerNorm", f"{layer}.output.LayerNorm"]
    for name, (size_out, size_in) in linear.items():
        arrays[f"{name}.weight"], arrays[f"{name}.bias"] = numbers(size_out, size_in), numbers(size_out)
    for name in norms:
        arrays[f"{name}.weight"], arrays[f"{name}.bias"] = 1 + numbers(hidden), numbers(hidden)
    return arrays


def linear(p: Arrays, name: str, x: np.ndarray) -> np.ndarray:
    return x @ p[f"{name}.weight"].T + p[f"{name}.bias"]


def norm(p: Arrays, name: str, x: np.ndarray) -> np.ndarray:
    x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + EPSILON)
    return x * p[f"{name}.weight"] + p[f"{name}.bias"]


def encode(p: Arrays, layers: int, heads: int, ids: np.ndarray, segments: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Return the last hidden states [L, H] of a sequence with padding: IDs, segments, mask (1 for tokens) int [L]."""
    p = {name: values.astype(np.float64) for name, values in p.items()}
    embeddings = "bert.embeddings"
    x = p[f"{embeddings}.word_embeddings.weight"][ids]
    x = x + p[f"{embeddings}.position_embeddings.weight"][: len(ids)]
    x = norm(p, f"{embeddings}.LayerNorm", x + p[f"{embeddings}.token_type_embeddings.weight"][segments])
    for i in range(layers):
        layer = f"bert.encoder.layer.{i}"
        query, key, value = (linear(p, f"{layer}.attention.self.{part}", x) for part in ("query", "key", "value"))
        size = x.shape[1] // heads
        context = np.zeros_like(x)
        for head in range(heads):
            part = slice(head * size, (head + 1) * size)
            scores = query[:, part] @ key[:, part].T / np.sqrt(size)
            scores = np.where(mask[None, :] == 1, scores, -np.inf)
            context[:, part] = softmax(scores, axis=-1) @ value[:, part]
        x = norm(p, f"{layer}.attention.output.LayerNorm", x + linear(p, f"{layer}.attention.output.dense", context))
        inner = gelu(linear(p, f"{layer}.intermediate.dense", x))
        x = norm(p, f"{layer}.output.LayerNorm", x + linear(p, f"{layer}.output.dense", inner))
    return x


def pooled(p: Arrays, hidden: np.ndarray) -> np.ndarray:
    """Return the pooled vector [H] of the last hidden states [L, H]."""
    return np.tanh(linear(p, "bert.pooler.dense", hidden[0].astype(np.float64)))


def token_probabilities(p: Arrays, hidden: np.ndarray) -> np.ndarray:
    """Return the probabilities of the head over tokens, [..., tokens], for hidden states [..., H]."""
    x = gelu(linear(p, "cls.predictions.transform.dense", hidden.astype(np.float64)))
    x = norm(p, "cls.predictions.transform.LayerNorm", x)
    bias = p["cls.predictions.bias"]
    return softmax(x @ p["bert.embeddings.word_embeddings.weight"][: len(bias)].T + bias, axis=-1)
