"""The names of parameters in different formats, in one table for both directions.

Our names are those of upstream's static model (see model/parameters.py), the first column. The other columns are
upstream's dygraph model, PaddleNLP's ErnieGramModel and Hugging Face's BertModel. Parameters that only our own models
have (n-gram tables, the generator, the heads of other objectives) are in no row.

Matrices of linear layers (our names that end in `.w_0`) are [in, out] everywhere except in BERT: there, [out, in].
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, get_args

import numpy as np

from ernie_gram.run.checkpoint import Arrays
from reader.errors import InputError

Column = Literal["static", "dygraph", "paddlenlp", "bert"]
COLUMNS: tuple[Column, ...] = get_args(Column)
# The names of one parameter in the columns; "" where a column does not have it.
Row = tuple[str, ...]
# Tables that only some of our models read. Other software always reads them, or never.
SEGMENTS, RELATIVE = "sent_embedding", "rel_pos_embedding"
MAPPING = "emb_hidden_mapping"  # from the width of the embeddings to the hidden size, where they differ

TABLES: tuple[Row, ...] = (
    ("word_embedding", "word_emb.weight", *["embeddings.word_embeddings.weight"] * 2),
    ("pos_embedding", "pos_emb.weight", *["embeddings.position_embeddings.weight"] * 2),
    (SEGMENTS, "sent_emb.weight", *["embeddings.token_type_embeddings.weight"] * 2),
    # PaddleNLP creates this table and never uses it.
    (RELATIVE, "rel_pos_bias_emb.weight", "embeddings.rel_pos_embeddings.weight", ""),
    (MAPPING, "", "", ""),
    (f"{MAPPING}_bias", "", "", ""),
)
# Layers with two parameters, `weight` and `bias` in the other columns.
LINEAR, NORM = (".w_0", ".b_0"), ("_scale", "_bias")
EMBEDDING_NORM: Row = ("pre_encoder_layer_norm", "ln", "embeddings.layer_norm", "embeddings.LayerNorm")
POOLER: Row = ("pooled_fc", "pooler", "pooler.dense", "pooler.dense")
# The beginnings of the names in a layer of the encoder, whose number is {i}, and their ends.
LAYER: Row = ("encoder_layer_{i}_", "encoder_stack.block.{i}.", "encoder.layers.{i}.", "encoder.layer.{i}.")
LAYER_LINEAR: tuple[Row, ...] = (
    ("multi_head_att_query_fc", "attn.q", "self_attn.q_proj", "attention.self.query"),
    ("multi_head_att_key_fc", "attn.k", "self_attn.k_proj", "attention.self.key"),
    ("multi_head_att_value_fc", "attn.v", "self_attn.v_proj", "attention.self.value"),
    ("multi_head_att_output_fc", "attn.o", "self_attn.out_proj", "attention.output.dense"),
    ("ffn_fc_0", "ffn.i", "linear1", "intermediate.dense"),
    ("ffn_fc_1", "ffn.o", "linear2", "output.dense"),
)
LAYER_NORMS: tuple[Row, ...] = (
    ("post_att_layer_norm", "ln1", "norm1", "attention.output.LayerNorm"),
    ("post_ffn_layer_norm", "ln2", "norm2", "output.LayerNorm"),
)


def _pairs(endings: tuple[str, str], *layers: Row) -> Iterator[Row]:
    """Yield the rows of layers with two parameters."""
    for ours, *theirs in layers:
        for ending, part in zip(endings, ("weight", "bias"), strict=True):
            yield (ours + ending, *(name and f"{name}.{part}" for name in theirs))


# The head over tokens whose output table is the token embedding. PaddleNLP's ERNIE-Gram has no such head.
MLM_ROWS: tuple[Row, ...] = (
    *_pairs(LINEAR, ("mask_lm_trans_fc", "mlm", "", "cls.predictions.transform.dense")),
    *_pairs(NORM, ("mask_lm_trans_layer_norm", "mlm_ln", "", "cls.predictions.transform.LayerNorm")),
    ("mask_lm_out_fc.b_0", "mlm_bias", "", "cls.predictions.bias"),
)
TOKEN_HEAD = tuple(row[0] for row in MLM_ROWS)


# Of the encoder's names in models with a head; the bare encoder has none. The first one is written, the others occur in
# files of related models: the encoders of PaddleNLP's Ernie and Bert have the names of its ErnieGram.
PREFIXES: Mapping[Column, tuple[str, ...]] = {
    "static": (),
    "dygraph": (),
    "paddlenlp": ("ernie_gram.", "ernie.", "bert."),
    "bert": ("bert.", "ernie."),
}
# Endings in old files of BERT -> those in the rows.
OLD_ENDINGS = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}
# The beginnings of names (without prefix) that a model of ours does not hold: heads of tasks and of pairs of sentences,
# constants, the embeddings of tasks, which are refused if the settings ask for them, and what upstream's training saves
# beside the parameters: Adam's moments and powers, and the state of the schedule.
LEFT_OUT = (
    r"cls[_.]|classifier\.|qa_outputs\.|pooler_heads\.|next_sent_fc\."
    r"|embeddings\.(\w+_ids$|task_type_embeddings\.weight$)"
    r"|@LR_DECAY_COUNTER@|learning_rate|scheduled_learning_rate|loss_scaling|num_good_steps"
    r"|.*(_moment[12]_0|_beta[12]_pow_acc_0|\.master)$"
)
# Parameters of BERT that must equal another one -> our name of that one.
COPIES = {"cls.predictions.decoder.weight": "word_embedding", "cls.predictions.decoder.bias": "mask_lm_out_fc.b_0"}


def rows(num_layers: int) -> Iterator[Row]:
    """Yield the rows of a model with this number of layers."""
    yield from (*TABLES, *_pairs(NORM, EMBEDDING_NORM))
    for number in range(num_layers):
        starts = [start.format(i=number) for start in LAYER]
        for row in (*_pairs(LINEAR, *LAYER_LINEAR), *_pairs(NORM, *LAYER_NORMS)):
            yield tuple(map(str.__add__, starts, row))
    yield from (*_pairs(LINEAR, POOLER), *MLM_ROWS)


def names(column: Column, num_layers: int) -> dict[str, str]:
    """Return our name -> the column's name without prefix, for every parameter that the column has."""
    index = COLUMNS.index(column)
    return {row[0]: row[index] for row in rows(num_layers) if row[index]}


def foreign_prefix(in_file: Iterable[str], column: Column) -> str:
    """Return what a wrapper of the model put before all names in a file, such as "module.", or ""."""
    own = "|".join(map(re.escape, PREFIXES[column]))
    start = re.compile(rf"(.*?\.)??({own})?{re.escape(names(column, 0)['word_embedding'])}")
    foreign = next((found[1] or "" for name in in_file if (found := start.fullmatch(name))), "")
    return foreign if all(name.startswith(foreign) for name in in_file) else ""


def to_ours(stored: Arrays, column: Column, num_layers: int, source: str) -> tuple[dict[str, str], list[str]]:
    """Return our name -> the name in a file; and the names in the file of what a model of ours does not hold.

    A name that is not in the table is in the first value under "unknown", a space and itself. Raises InputError, which
    names `source`, if two names mean the same parameter, or if a copy differs from it.
    """
    spelled, copies, left_out = dict[str, str](), dict[str, str](), list[str]()
    ours_of = {theirs: ours for ours, theirs in names(column, num_layers).items()}
    for name in stored:
        bare = _bare(name, column)
        ours = ours_of.get(bare)
        if ours in spelled:
            raise InputError(f"{source}: {spelled[ours]} and {name} are the same parameter; remove one of them")
        if ours is not None:
            spelled[ours] = name
        elif bare in COPIES:
            copies[name] = COPIES[bare]
        elif re.match(LEFT_OUT, bare):
            left_out.append(name)
        else:
            spelled[f"unknown {name}"] = name
    for name, ours in copies.items():
        original = spelled.setdefault(ours, name)  # the file may have the copy only
        if not np.array_equal(stored[name], stored[original]):
            raise InputError(
                f"{source}: {name} differs from {original}; only heads with tied parameters can be converted"
            )
    return spelled, left_out


def _bare(name: str, column: Column) -> str:
    """Return a name without the prefix, and with the ending that the rows have."""
    name = name.removeprefix(next((prefix for prefix in PREFIXES[column] if name.startswith(prefix)), ""))
    old = next((old for old in OLD_ENDINGS if name.endswith(old)), "")
    return name.removesuffix(old) + OLD_ENDINGS.get(old, "")


def oriented(values: np.ndarray, ours: str, column: Column) -> np.ndarray:
    """Return a parameter from a column in our orientation, or one of ours in that of the column."""
    return np.ascontiguousarray(values.T) if is_transposed(ours, column) else values


def is_transposed(ours: str, column: Column) -> bool:
    """Return whether a column stores a parameter as [out, in] that is [in, out] here."""
    return column == "bert" and ours.endswith(".w_0")
