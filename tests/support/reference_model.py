"""The model and its loss terms in numpy and float64, one sequence and one row at a time, by their definitions."""

from __future__ import annotations

import numpy as np
from scipy.special import erf, log_softmax, softmax

from ernie_gram.model.config import ModelConfig
from reader.batches.fields import Batch
from tests.support.static_programs import Arrays

# (first, last, bucket): the bucket of each range of distances |n|.
RANGES = [(8, 11, 8), (12, 15, 9), (16, 22, 10), (23, 31, 11), (32, 45, 12), (46, 63, 13), (64, 90, 14)]


def bucket(query: int, key: int) -> int:
    """Return the bucket of a query slot and a key slot, from the written list of ranges."""
    if query == 0:
        return 16
    if key == 0:
        return 32
    distance = abs(key - query)
    exact = distance if distance <= 7 else 15
    for first, last, number in RANGES:
        if first <= distance <= last:
            exact = number
    return exact + 16 * (key < query)


def norm(x: np.ndarray, p: Arrays, name: str, epsilon: float) -> np.ndarray:
    mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + epsilon) * p[f"{name}_scale"] + p[f"{name}_bias"]


def linear(x: np.ndarray, p: Arrays, name: str) -> np.ndarray:
    return x @ p[f"{name}.w_0"] + p[f"{name}.b_0"]


def gelu(x: np.ndarray) -> np.ndarray:
    return x * 0.5 * (1 + erf(x / np.sqrt(2)))


def embed(config: ModelConfig, p: Arrays, x: np.ndarray, sentences: np.ndarray, prefix: str) -> np.ndarray:
    """Return the input of the first block, given the sum of word and position embeddings."""
    if config.use_sentence_embedding:
        x = x + p[f"{prefix}sent_embedding"][sentences]
    x = norm(x, p, f"{prefix}pre_encoder_layer_norm", config.layer_norm_eps)
    if config.embedding_size != config.hidden_size:
        x = x @ p[f"{prefix}emb_hidden_mapping"] + p[f"{prefix}emb_hidden_mapping_bias"]
    return x


def encode(
    config: ModelConfig,
    p: Arrays,
    words: np.ndarray,
    sentences: np.ndarray,
    queries: list[tuple[int, int]],
    prefix: str = "",
    weights: list[np.ndarray] | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Encode one sequence without padding; return context rows [L, H] and query rows [K, H].

    `words` [L, E] are word embeddings and `sentences` int [L] sentence IDs; `queries` has (i - 1, slot) for each [Mi].
    `weights` gets the attention weights [Q, T] of every layer and head in turn.
    """
    length, heads = len(words), config.num_attention_heads
    position = p[f"{prefix}pos_embedding"]
    x = embed(config, p, words + position[:length], sentences, prefix)
    extra = [
        embed(config, p, p[f"{prefix}query_embedding"][rank] + position[slot], sentences[slot], prefix)
        for rank, slot in queries
    ]
    size = config.hidden_size // heads
    for i in range(config.num_hidden_layers):
        name = f"{prefix}encoder_layer_{i}"
        table = p[f"{prefix}rel_pos_embedding"] if config.use_relative_position else np.zeros((33, heads))

        def attend(rows: np.ndarray, keys: np.ndarray, buckets: np.ndarray, name: str, table: np.ndarray) -> np.ndarray:
            """Return a block's output [Q, H]; rows [Q, H] attend to keys [T, H] (equation 4); buckets int [Q, T]."""
            query = linear(rows, p, f"{name}_multi_head_att_query_fc")
            key, value = (linear(keys, p, f"{name}_multi_head_att_{part}_fc") for part in ("key", "value"))
            found = np.zeros_like(rows)
            for head in range(heads):
                cut = slice(head * size, (head + 1) * size)
                scores = query[:, cut] @ key[:, cut].T / np.sqrt(size) + table[buckets, head]
                found[:, cut] = softmax(scores, -1) @ value[:, cut]
                if weights is not None:
                    weights.append(softmax(scores, -1))
            rows = rows + linear(found, p, f"{name}_multi_head_att_output_fc")
            rows = norm(rows, p, f"{name}_post_att_layer_norm", config.layer_norm_eps)
            fed = linear(gelu(linear(rows, p, f"{name}_ffn_fc_0")), p, f"{name}_ffn_fc_1")
            return norm(rows + fed, p, f"{name}_post_ffn_layer_norm", config.layer_norm_eps)

        buckets = np.array([[bucket(q, k) for k in range(length)] for q in range(length)])
        extra = [
            attend(row[None], np.concatenate([x, row[None]]), np.append(buckets[slot], 0)[None], name, table)[0]
            for row, (_, slot) in zip(extra, queries, strict=True)
        ]
        x = attend(x, x, buckets, name, table)
    return x, np.array(extra)


def scores(p: Arrays, x: np.ndarray, prefix: str, table: np.ndarray | None, epsilon: float) -> np.ndarray:
    """Return a head's logits of rows [.., H]; if `table` is None, the head has its own low-rank table."""
    x = gelu(linear(x, p, f"{prefix}_trans_fc"))
    if f"{prefix}_trans_layer_norm_scale" in p:
        x = norm(x, p, f"{prefix}_trans_layer_norm", epsilon)
    if table is None:
        table = p[f"{prefix}_out_embedding"]
    return x @ table.T + p[f"{prefix}_out_fc.b_0"]


def terms(
    main: ModelConfig, small: ModelConfig, p: Arrays, batch: Batch, sampled: np.ndarray | None, tokens: int
) -> dict[str, float]:
    """Return the mean of each loss term that the batch has labels for and `p` has parameters for.

    `sampled` holds the generator's sample for each masked slot, or is None without a generator. Terms by equation:
    "contiguous" is 1; "explicit" is 2, and with "comprehensive" 3; these and "generator" are 5; "rtd" is 6.
    """
    p = {name: value.astype(np.float64) for name, value in p.items()}
    tied = "mask_lm_out_embedding" not in p
    units = p["word_embedding"][:tokens]
    if "ngram_embedding" in p:
        units = np.concatenate([units, p["ngram_embedding"]])
    losses: dict[str, list[float]] = {
        name: [] for name in ("explicit", "contiguous", "comprehensive", "generator", "rtd")
    }
    width = batch["input_ids"].shape[1]

    def nll(row: np.ndarray, label: int) -> float:
        return -log_softmax(row)[label]

    for b, length in enumerate(batch["lengths"]):
        ids = batch["input_ids"][b, :length]
        nothing = np.zeros(length, int)
        mine = np.flatnonzero(batch["slots"] // width == b)
        slots = batch["slots"][mine] % width
        words = p["word_embedding"][ids]
        if sampled is not None:
            shared = "generator_word_projection.w_0" in p
            table = units if tied else p["mask_lm_out_embedding"]
            if shared:
                read = linear(words, p, "generator_word_projection")
            else:
                read = p["generator_word_embedding"][ids]
                table = p.get("generator_mask_lm_out_embedding")
                if table is None:
                    table = np.concatenate([p["generator_word_embedding"][:tokens], p["generator_ngram_embedding"]])
            small_x, _ = encode(small, p, read, nothing, [], "generator_")
            for m, slot in zip(mine, slots, strict=True):
                row = scores(p, small_x[slot], "generator_mask_lm", table, small.layer_norm_eps)
                losses["generator"].append(nll(row, batch["coarse_labels"][m]))
            words[slots] = units[sampled[mine]]
        queries: list[tuple[int, int]] = []
        if "fine_rows" in batch:
            max_queries = batch["query_slots"].shape[1]
            rows = np.flatnonzero(batch["fine_rows"] // max_queries == b)
            queries = [
                (int(batch["query_ranks"][b, k]), int(batch["query_slots"][b, k]))
                for k in batch["fine_rows"][rows] % max_queries
            ]
        x, extra = encode(main, p, words, nothing, queries)
        for m, slot in zip(mine, slots, strict=True):
            if "coarse_labels" in batch:
                row = scores(p, x[slot], "mask_lm", units if tied else None, main.layer_norm_eps)
                losses["explicit"].append(nll(row, batch["coarse_labels"][m]))
            else:
                row = scores(p, x[slot], "mask_lm", units[:tokens] if tied else None, main.layer_norm_eps)
                losses["contiguous"].append(nll(row, batch["token_labels"][m]))
        if queries:
            for row_x, q in zip(extra, rows, strict=True):
                row = scores(p, row_x, "fine_lm", units[:tokens] if tied else None, main.layer_norm_eps)
                losses["comprehensive"].append(nll(row, batch["fine_labels"][q]))
        if sampled is not None and "rtd_out_fc.w_0" in p:
            replaced = np.zeros(length)
            replaced[slots] = sampled[mine] != batch["coarse_labels"][mine]
            z = linear(gelu(linear(x, p, "rtd_trans_fc")), p, "rtd_out_fc")[:, 0]
            losses["rtd"] += list(np.logaddexp(0, z) - replaced * z)
    return {name: float(np.mean(values)) for name, values in losses.items() if values}
