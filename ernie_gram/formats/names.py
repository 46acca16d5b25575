"""Names of parameters: one table of rows, read in both directions.

Ours are those of upstream's static model (layers.py), which is the first column. The others are upstream's dygraph
model, PaddleNLP's ErnieGramModel and Hugging Face's BertModel. Parameters that only our own models have (n-gram tables,
the generator, the heads of other objectives) are in no row.

Matrices of linear layers (our names that end in `.w_0`) are [in, out] everywhere except in BERT: there, [out, in].
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from ernie_gram.run.checkpoint import Arrays
from reader.errors import InputError

Column = Literal["static", "dygraph", "paddlenlp", "bert"]
# Tables that not every model of ours reads; other software may always read them, or never.
SEGMENTS, RELATIVE = "sent_embedding", "rel_pos_embedding"


@dataclass(frozen=True)
class Row:
    """The names of one parameter: ours, and those of the columns that have it.

    In the rows of LAYER_ROWS, `{i}` stands for the number of the layer, from 0.
    """

    ours: str
    theirs: Mapping[Column, str]


def _row(ours: str, dygraph: str = "", paddlenlp: str = "", bert: str = "") -> Row:
    """Return a row; "" stands for a column that does not have the parameter."""
    columns: dict[Column, str] = {"static": ours, "dygraph": dygraph, "paddlenlp": paddlenlp, "bert": bert}
    return Row(ours, {column: name for column, name in columns.items() if name})


def _pair(ours: tuple[str, str], dygraph: str = "", paddlenlp: str = "", bert: str = "") -> list[Row]:
    """Return the rows of a layer with two parameters, `weight` and `bias` in the columns; see `_row`."""
    return [
        _row(name, *(layer and f"{layer}.{part}" for layer in (dygraph, paddlenlp, bert)))
        for name, part in zip(ours, ("weight", "bias"), strict=True)
    ]


def _linear(ours: str, dygraph: str = "", paddlenlp: str = "", bert: str = "") -> list[Row]:
    return _pair((f"{ours}.w_0", f"{ours}.b_0"), dygraph, paddlenlp, bert)


def _norm(ours: str, dygraph: str = "", paddlenlp: str = "", bert: str = "") -> list[Row]:
    return _pair((f"{ours}_scale", f"{ours}_bias"), dygraph, paddlenlp, bert)


def _layer_rows() -> Iterator[Row]:
    ours, dygraph = "encoder_layer_{i}", "encoder_stack.block.{i}"
    paddlenlp, bert = "encoder.layers.{i}", "encoder.layer.{i}"
    for part, letter, projection, place in (
        ("query", "q", "q_proj", "attention.self.query"),
        ("key", "k", "k_proj", "attention.self.key"),
        ("value", "v", "v_proj", "attention.self.value"),
        ("output", "o", "out_proj", "attention.output.dense"),
    ):
        yield from _linear(
            f"{ours}_multi_head_att_{part}_fc",
            f"{dygraph}.attn.{letter}",
            f"{paddlenlp}.self_attn.{projection}",
            f"{bert}.{place}",
        )
    yield from _norm(
        f"{ours}_post_att_layer_norm", f"{dygraph}.ln1", f"{paddlenlp}.norm1", f"{bert}.attention.output.LayerNorm"
    )
    yield from _linear(f"{ours}_ffn_fc_0", f"{dygraph}.ffn.i", f"{paddlenlp}.linear1", f"{bert}.intermediate.dense")
    yield from _linear(f"{ours}_ffn_fc_1", f"{dygraph}.ffn.o", f"{paddlenlp}.linear2", f"{bert}.output.dense")
    yield from _norm(f"{ours}_post_ffn_layer_norm", f"{dygraph}.ln2", f"{paddlenlp}.norm2", f"{bert}.output.LayerNorm")


EMBEDDING_ROWS = (
    _row("word_embedding", "word_emb.weight", *["embeddings.word_embeddings.weight"] * 2),
    _row("pos_embedding", "pos_emb.weight", *["embeddings.position_embeddings.weight"] * 2),
    _row(SEGMENTS, "sent_emb.weight", *["embeddings.token_type_embeddings.weight"] * 2),
    # PaddleNLP creates this table and never uses it.
    _row(RELATIVE, "rel_pos_bias_emb.weight", "embeddings.rel_pos_embeddings.weight"),
    *_norm("pre_encoder_layer_norm", "ln", "embeddings.layer_norm", "embeddings.LayerNorm"),
    # From the width of the embeddings to the hidden size, where they differ.
    _row("emb_hidden_mapping"),
    _row("emb_hidden_mapping_bias"),
)
LAYER_ROWS = tuple(_layer_rows())
POOLER_ROWS = tuple(_linear("pooled_fc", "pooler", "pooler.dense", "pooler.dense"))
# The head over tokens whose output table is the token embedding. PaddleNLP's ERNIE-Gram has no such head.
MLM_ROWS = (
    *_linear("mask_lm_trans_fc", dygraph="mlm", bert="cls.predictions.transform.dense"),
    *_norm("mask_lm_trans_layer_norm", dygraph="mlm_ln", bert="cls.predictions.transform.LayerNorm"),
    _row("mask_lm_out_fc.b_0", dygraph="mlm_bias", bert="cls.predictions.bias"),
)


@dataclass(frozen=True)
class Spelling:
    """What the names of a column may have beside those of the rows.

    Attributes:
        prefix: of the encoder's names in models with a head; the bare encoder does not have it.
        other_prefixes: prefixes that have the same meaning in files of related models.
        legacy: endings in old files -> in the rows.
        ignored: beginnings of names (without prefix) that a model of ours does not hold -> what they are.
        ignored_endings: endings of such names -> what they are.
        copies: names (without prefix) of parameters that must equal another one -> our name of that.
    """

    prefix: str = ""
    other_prefixes: tuple[str, ...] = ()
    legacy: Mapping[str, str] = field(default_factory=dict)
    ignored: Mapping[str, str] = field(default_factory=dict)
    ignored_endings: Mapping[str, str] = field(default_factory=dict)
    copies: Mapping[str, str] = field(default_factory=dict)

    def bare(self, name: str) -> str:
        """Return a name without the prefix, and with the ending that the rows have."""
        prefix = next((prefix for prefix in (self.prefix, *self.other_prefixes) if name.startswith(prefix)), "")
        name = name.removeprefix(prefix)
        for old, new in self.legacy.items():
            if name.endswith(old):
                return name.removesuffix(old) + new
        return name

    def ignored_as(self, bare: str) -> str | None:
        """Return what a name without prefix stands for if it is among the ignored ones, or else None."""
        kinds = [what for beginning, what in self.ignored.items() if bare.startswith(beginning)]
        kinds += [what for ending, what in self.ignored_endings.items() if bare.endswith(ending)]
        return next(iter(kinds), None)


TASK_HEADS = dict.fromkeys(("classifier.", "qa_outputs."), "the head of a task")
BUFFERS = dict.fromkeys(("embeddings.position_ids", "embeddings.token_type_ids"), "a constant")
# What upstream's training saves beside the parameters: Adam's moments and powers, and the state of the schedule.
OPTIMIZER = "the state of the optimizer"
OPTIMIZER_STARTS = ("@LR_DECAY_COUNTER@", "learning_rate", "scheduled_learning_rate", "loss_scaling", "num_good_steps")
OPTIMIZER_ENDINGS = ("_moment1_0", "_moment2_0", "_beta1_pow_acc_0", "_beta2_pow_acc_0", ".master")
NEXT_SENTENCE = "the head for sentence pairs"
SPELLINGS: Mapping[Column, Spelling] = {
    "static": Spelling(
        ignored={
            "next_sent_fc.": NEXT_SENTENCE,
            "cls_": "the head of a task",
            **dict.fromkeys(OPTIMIZER_STARTS, OPTIMIZER),
        },
        ignored_endings=dict.fromkeys(OPTIMIZER_ENDINGS, OPTIMIZER),
    ),
    "dygraph": Spelling(ignored={"pooler_heads.": NEXT_SENTENCE, **TASK_HEADS}),
    # The encoders of PaddleNLP's Ernie and Bert have the same names.
    "paddlenlp": Spelling("ernie_gram.", ("ernie.", "bert."), ignored={**BUFFERS, **TASK_HEADS, "cls.": "a head"}),
    "bert": Spelling(
        "bert.",
        ("ernie.",),
        {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"},
        {"cls.seq_relationship.": NEXT_SENTENCE, **BUFFERS, **TASK_HEADS},
        copies={
            "cls.predictions.decoder.weight": "word_embedding",
            "cls.predictions.decoder.bias": "mask_lm_out_fc.b_0",
        },
    ),
}


def rows(num_layers: int) -> Iterator[Row]:
    """Yield the rows of a model with this number of layers, with the layer's number in place of `{i}`."""
    yield from EMBEDDING_ROWS
    for i in range(num_layers):
        for row in LAYER_ROWS:
            yield Row(row.ours.format(i=i), {column: name.format(i=i) for column, name in row.theirs.items()})
    yield from (*POOLER_ROWS, *MLM_ROWS)


def names(column: Column, num_layers: int) -> dict[str, str]:
    """Return our name -> the column's name without prefix, for every parameter that the column has."""
    return {row.ours: row.theirs[column] for row in rows(num_layers) if column in row.theirs}


def without_name(parameters: Iterable[str], column: Column, num_layers: int) -> list[str]:
    """Return those of our names that the column does not have."""
    theirs = names(column, num_layers)
    return [name for name in parameters if name not in theirs]


@dataclass(frozen=True)
class Renaming:
    """What the names in a file mean.

    Attributes:
        ours: name in the file -> our name.
        ignored: name in the file -> what it is; known parameters that a model of ours does not hold.
        unknown: names in the file that are not in the table.
        copies: name in the file -> our name of the parameter that it must equal.
    """

    ours: dict[str, str]
    ignored: dict[str, str]
    unknown: list[str]
    copies: dict[str, str]


def renaming(in_file: Iterable[str], column: Column, num_layers: int, source: str) -> Renaming:
    """Look up the names of a file. Raises InputError, which names `source`, if two of them mean the same parameter."""
    spelling = SPELLINGS[column]
    ours_of = {theirs: ours for ours, theirs in names(column, num_layers).items()}
    found, name_of = Renaming({}, {}, [], {}), dict[str, str]()
    for name in in_file:
        bare = spelling.bare(name)
        ours, what = ours_of.get(bare), spelling.ignored_as(bare)
        if ours in name_of:
            raise InputError(f"{source}: {name_of[ours]} and {name} are the same parameter; remove one of them")
        if ours is not None:
            name_of[ours], found.ours[name] = name, ours
        elif what is not None:
            found.ignored[name] = what
        elif bare in spelling.copies:
            found.copies[name] = spelling.copies[bare]
        else:
            found.unknown.append(name)
    for name, original in list(found.copies.items()):
        if original not in name_of:  # the file has the copy only
            name_of[original], found.ours[name] = name, original
            del found.copies[name]
    return found


def to_ours(arrays: Arrays, column: Column, found: Renaming) -> Arrays:
    """Return the arrays of a file that have a name of ours, BERT's matrices as [in, out]."""
    return {
        name: np.ascontiguousarray(arrays[theirs].T) if is_transposed(name, column) else arrays[theirs]
        for theirs, name in found.ours.items()
    }


def from_ours(arrays: Arrays, column: Column, num_layers: int, with_prefix: bool) -> Arrays:
    """Return arrays under the names of a column, BERT's matrices as [out, in].

    Args:
        with_prefix: whether the encoder's names have the prefix (see Spelling), as in models with a head.
    Raises KeyError for a parameter that the column does not have, see `without_name`.
    """
    theirs, prefix = names(column, num_layers), SPELLINGS[column].prefix if with_prefix else ""
    heads = {row.ours for row in MLM_ROWS}
    return {
        ("" if name in heads else prefix) + theirs[name]: np.ascontiguousarray(values.T)
        if is_transposed(name, column)
        else values
        for name, values in arrays.items()
    }


def is_transposed(ours: str, column: Column) -> bool:
    """Return whether a column stores a parameter as [out, in] that is [in, out] here."""
    return column == "bert" and ours.endswith(".w_0")
