"""Warm start: the settings of a pre-training run and its start values, from a given model.

Nothing here imports Paddle, so that errors are reported before it loads. The encoder and the token rows are those of
the given model. What it lacks is chosen so that the run begins with the function that the given model computes: see
`warm_start_values`.

Shape letters: E embedding size, H hidden, F tokens, N n-grams, O output size.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import dataclass, fields, replace
from functools import partial

import numpy as np

from ernie_gram.config import require
from ernie_gram.formats.heads import is_explicit
from ernie_gram.formats.model import ModelRecord
from ernie_gram.formats.parameters import head_size
from ernie_gram.model.config import NUM_BUCKETS, ModelConfig
from ernie_gram.pretraining.config import PretrainConfig
from ernie_gram.pretraining.sizes import log_frequencies
from ernie_gram.run.checkpoint import Arrays
from reader.corpus.memmap import Corpus

# Settings that change the function that the given parameters compute, or the shapes of its parameters.
FIXED = (
    *("vocab_size", "hidden_size", "emb_size", "intermediate_size", "num_hidden_layers", "num_attention_heads"),
    *("hidden_act", "use_sentence_embedding", "sent_type_vocab_size"),
)
# N-grams whose rows are computed together: bounds the memory of the rows of all their tokens.
NGRAMS_PER_BLOCK = 1 << 14
GENERATOR = "generator_"
# Prefixes of the parameters that depend on the objective and the classes; all others are taken as they are.
OF_OBJECTIVE = ("mask_lm_", "fine_lm_", "ngram_embedding", GENERATOR)


def fit_to_start(config: PretrainConfig, given: Container[str], model: ModelRecord) -> PretrainConfig:
    """Return the config with the model settings that were not given taken from `model`.

    Args:
        config: with defaults for the keys that were not given.
        given: the dotted keys that the user has set.
        model: the given model.

    Raises InputError, with the key and both values, if a given setting does not fit the model.
    """
    source, theirs = model.source, model_settings(model)
    changes = {
        field.name: getattr(config.model, field.name) for field in fields(ModelConfig) if f"model.{field.name}" in given
    }
    fixed = {key: getattr(theirs, key) for key in FIXED}
    if theirs.use_relative_position:
        fixed["use_relative_position"] = True
    if "query_embedding" in model.parameters:
        fixed["max_ngram_tokens"] = theirs.max_ngram_tokens
    for key, value in fixed.items():
        mine = changes.pop(key, None)
        # null stands for that of the given model.
        reason = f"{mine}, but {value} in {source}, from which the run starts; leave it out"
        require(mine in (None, value), f"model.{key}", reason)
    has_table = "rel_pos_embedding" in model.parameters
    # Without a table no bias, so that the run begins with the function that the given model computes. With one, this is
    # the start of a generator that is drawn.
    theirs = replace(theirs, relative_position_start="distance" if has_table else "zero")
    positions = len(model.parameters["pos_embedding"])
    given_positions = changes.get("max_position_embeddings", 0)
    require(
        given_positions <= positions,
        "model.max_position_embeddings",
        f"{given_positions} exceeds the {positions} positions of {source}; give {positions} or less",
    )
    settings = replace(theirs, **changes)
    require(
        config.data.max_seq_len <= settings.max_position_embeddings,
        "data.max_seq_len",
        f"{config.data.max_seq_len} exceeds model.max_position_embeddings {settings.max_position_embeddings}; give "
        f"--data.max_seq_len {settings.max_position_embeddings}, or leave the other key out",
    )
    return replace(config, model=settings)


def model_settings(model: ModelRecord) -> ModelConfig:
    """Return a model's settings as those of a run: sizes that the parameters show are explicit, and no pooler."""
    parameters = model.parameters
    return replace(
        model.config,
        vocab_size=len(parameters["word_embedding"]),
        max_position_embeddings=len(parameters["pos_embedding"]),
        # A model without a head says nothing about it: tied, because then the output table need not be learned.
        out_emb_size=head_size(parameters) or 0,
        max_ngram_tokens=len(parameters.get("query_embedding", ())) or model.config.max_ngram_tokens,
        use_pooler=False,
    )


def check_vocabulary(model: ModelRecord, corpus: Corpus) -> None:
    """Raise InputError unless the given model has the vocabulary of the corpus, token for token.

    A corpus's lexicon has the corpus's vocabulary, so this refuses a lexicon of another vocabulary too.
    """
    require(
        model.vocabulary.fingerprint == corpus.info.vocabulary,
        "paths.start",
        f"{model.source} has another vocabulary than {corpus.path} ({len(model.vocabulary):,} and "
        f"{len(corpus.vocabulary):,} tokens); build the lexicon and the corpus with the vocabulary of the model",
    )


def warm_start_values(model: ModelRecord, config: PretrainConfig, corpus: Corpus, biases: Arrays) -> Arrays:
    """Return start values by parameter name, float32. Parameters of the run that are not among them are drawn.

    - Encoder and token rows: those of the given model; of its positions, as many as the run has.
    - Rows of n-grams, in embeddings and output tables: those of the given model if it has the same lexicon, else the
      means of the rows of their tokens.
    - Relative positions: zero if the given model has none and model.relative_position_start is "zero".
    - Query rows [M1], [M2], ...: the row of [MASK], from which the given model predicts the token of a slot. They need
      no noise to become different, because each of them predicts another token of an n-gram.
    - Heads: see `_Heads.values`. "fine_lm" starts as "mask_lm" if the given model has only the latter.
    - Generator: that of the given model if it has the same hidden size and the same generator.share_embeddings;
      otherwise it is drawn.

    The result may include parameters of the given model that the run does not have, such as the pooler.

    Args:
        config: as returned by fit_to_start.
        corpus: of the run, whose classes it predicts; under contiguous masking only its tokens.
        biases: output biases by name, [F] or [F + N], for classes that the given model does not have; may be empty.
    """
    found, settings, objective = model.parameters, config.model, config.objective
    values = {name: array for name, array in found.items() if not name.startswith(OF_OBJECTIVE)}
    values["pos_embedding"] = found["pos_embedding"][: settings.max_position_embeddings]
    if settings.use_relative_position and settings.relative_position_start == "zero":
        values.setdefault("rel_pos_embedding", _no_bias(settings.num_attention_heads))
    if objective.has_queries:
        mask_row = found["word_embedding"][corpus.vocabulary.mask]
        values.setdefault("query_embedding", np.tile(mask_row, (settings.max_ngram_tokens, 1)))
    heads = _Heads(model, config, corpus, biases)
    if objective.has_generator or not settings.out_emb_size:
        values |= heads.ngram_table("ngram_embedding", found["word_embedding"])
    values |= heads.values("mask_lm", "mask_lm", (settings.hidden_size, settings.embedding_size), heads.ngrams)
    if objective.has_queries:
        source = "fine_lm" if "fine_lm_trans_fc.w_0" in found else "mask_lm"
        values |= heads.values("fine_lm", source, (settings.hidden_size, settings.embedding_size), 0)
    if objective.has_generator:
        values |= _generator_values(heads)
    return values


def _generator_values(heads: _Heads) -> Arrays:
    """Return the generator's start values.

    There are none unless the given model has a generator of the same hidden size and with the same
    `share_embeddings`: its layers compute nothing meaningful from other embeddings.
    """
    found, config = heads.model.parameters, heads.config
    small, prefix = config.generator.model(config.model), f"{GENERATOR}mask_lm"
    norm = found.get(f"{GENERATOR}pre_encoder_layer_norm_scale")
    word, shares = found.get(f"{GENERATOR}word_embedding"), config.generator.share_embeddings
    if norm is None or len(norm) != small.hidden_size or (word is None) != shares:
        return {}
    of_classes = (prefix, f"{GENERATOR}ngram_embedding")
    values = {n: a for n, a in found.items() if n.startswith(GENERATOR) and not n.startswith(of_classes)}
    positions = f"{GENERATOR}pos_embedding"
    values[positions] = found[positions][: small.max_position_embeddings]
    if small.use_relative_position:
        values.setdefault(f"{GENERATOR}rel_pos_embedding", _no_bias(small.num_attention_heads))
    if word is not None and not small.out_emb_size:
        values |= heads.ngram_table(f"{GENERATOR}ngram_embedding", word)
    size = config.model.embedding_size if shares else small.hidden_size
    return values | heads.values(prefix, prefix, (small.hidden_size, size), heads.ngrams)


@dataclass(frozen=True)
class _Heads:
    """Makes the start values of heads and of tables of n-grams. Its fields are the arguments of warm_start_values."""

    model: ModelRecord
    config: PretrainConfig
    corpus: Corpus
    biases: Arrays

    @property
    def ngrams(self) -> int:
        """N, number of n-grams among the classes; 0 under contiguous masking."""
        return self.corpus.info.num_ngrams if self.config.objective.is_explicit else 0

    def values(self, name: str, source: str, tied: tuple[int, int], ngrams: int) -> Arrays:
        """Return the start values of the head `name` over F tokens and `ngrams` n-grams.

        - Transform: that of the given model's head `source` if both heads are of the same kind and size. Otherwise a
          tied head begins with the identity and a LayerNorm of scale 1, if it does not change the size, and a low-rank
          head is drawn, because nothing in the given model corresponds to it.
        - Output table of a low-rank head, and output bias: as the transform, n-grams as `_classes` says.

        `tied` is the shape of the transform if the head is tied: (size of its input, size of the embeddings).
        """
        found, size = self.model.parameters, self.config.model.out_emb_size
        parts = ["trans_fc.w_0", "trans_fc.b_0"]
        parts += [] if size else ["trans_layer_norm_scale", "trans_layer_norm_bias"]
        has_norm = f"{source}_trans_layer_norm_scale" in found
        weight, shape = found.get(f"{source}_trans_fc.w_0"), (tied[0], size) if size else tied
        if weight is None or weight.shape != shape or has_norm == bool(size):
            return {} if size or tied[0] != tied[1] else _identity(name, tied[0])
        values = {f"{name}_{part}": found[f"{source}_{part}"] for part in parts}
        # Upstream's released weights have the transform of a low-rank head without its table and its bias.
        table, bias = found.get(f"{source}_out_embedding"), found.get(f"{source}_out_fc.b_0")
        if size and table is not None:
            values[f"{name}_out_embedding"] = self._classes(table, ngrams, partial(ngram_means, corpus=self.corpus))
        if bias is not None:
            out = f"{name}_out_fc.b_0"
            values[out] = self._classes(bias, ngrams, partial(self._ngram_biases, out))
        return values

    def ngram_table(self, name: str, token_rows: np.ndarray) -> Arrays:
        """Return the start values of the table `name` of n-grams alone, none without n-grams."""
        found = self.model.parameters.get(name)
        if found is not None and self._same_lexicon:
            return {name: found}
        return {name: ngram_means(token_rows, self.corpus)} if self.ngrams else {}

    @property
    def _same_lexicon(self) -> bool:
        lexicon = self.model.lexicon
        return lexicon is not None and self.ngrams > 0 and lexicon.fingerprint == self.corpus.info.lexicon

    def _classes(self, found: np.ndarray, ngrams: int, new: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """Return rows of F tokens and `ngrams` n-grams; those are made by `new` unless the lexicon is the same."""
        tokens = found[: self.corpus.info.num_tokens]
        if not ngrams:
            return tokens
        if self._same_lexicon and len(found) == len(tokens) + ngrams:
            return found
        return np.concatenate([tokens, new(found)])

    def _ngram_biases(self, name: str, found: np.ndarray) -> np.ndarray:
        """Return output biases of n-grams, float32 [N]: their log frequencies, shifted as the biases of their tokens.

        A constant that is added to all biases `found` of tokens changes nothing in the given model, and a part of the
        tokens' frequencies may be in their rows. So the shift is the mean of (bias - log frequency) of the tokens.
        Without frequencies (objective.output_bias "zero"), the bias is the mean of those of the tokens.
        """
        corpus, pretraining = self.corpus, self.model.pretraining
        biases, num_tokens = self.biases.get(name), corpus.info.num_tokens
        # Tokens inside of n-grams are not counted in the biases of a model that predicts n-grams.
        by_units = pretraining is not None and is_explicit(pretraining)
        counts = corpus.unit_counts if by_units else corpus.token_counts
        logs, own = (0, 0) if biases is None else (log_frequencies(counts)[:num_tokens], biases[num_tokens:])
        return own + ngram_means((found[:num_tokens] - logs).astype(np.float32)[:, np.newaxis], corpus)[:, 0]


def _no_bias(heads: int) -> np.ndarray:
    """Return the relative bias of an encoder that was trained without one."""
    return np.zeros((NUM_BUCKETS, heads), np.float32)


def _identity(name: str, size: int) -> Arrays:
    """Return the start values of a tied head's transform that changes nothing but the scale."""
    zeros = np.zeros(size, np.float32)
    return {
        f"{name}_trans_fc.w_0": np.eye(size, dtype=np.float32),
        f"{name}_trans_fc.b_0": zeros,
        f"{name}_trans_layer_norm_scale": zeros + 1,
        f"{name}_trans_layer_norm_bias": zeros,
    }


def ngram_means(rows: np.ndarray, corpus: Corpus) -> np.ndarray:
    """Return the mean of the rows of each n-gram's tokens, float32 [N, size]; `rows` are those of all tokens."""
    tokens, offsets = corpus.ngram_tokens, corpus.ngram_offsets
    means = np.empty((len(offsets) - 1, rows.shape[1]), np.float32)
    for first in range(0, len(means), NGRAMS_PER_BLOCK):
        block = offsets[first : first + NGRAMS_PER_BLOCK + 1]
        sums = np.add.reduceat(rows[tokens[block[0] : block[-1]]], block[:-1] - block[0], axis=0)
        means[first : first + len(sums)] = sums / np.diff(block)[:, np.newaxis]
    return means
