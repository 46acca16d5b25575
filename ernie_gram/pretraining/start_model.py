"""The given model of a warm start: whether a run can start from it, and the settings that it decides.

Nothing here imports Paddle, so that errors are reported before it loads.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, fields, replace

from ernie_gram.config import require
from ernie_gram.formats.model import ModelRecord, digest_of
from ernie_gram.formats.parameters import head_size
from ernie_gram.model.config import ModelConfig
from ernie_gram.pretraining.config import PretrainConfig
from reader.corpus.memmap import Corpus

# Settings that change the function that the given parameters compute, or the shapes of its parameters.
FIXED = (
    *("vocab_size", "hidden_size", "emb_size", "intermediate_size", "num_hidden_layers", "num_attention_heads"),
    *("hidden_act", "use_sentence_embedding", "sent_type_vocab_size"),
)


@dataclass(frozen=True)
class Start:
    """A model that fits a run.

    Attributes:
        model: its shape and its parameters.
        digest: of its parameters; part of the run's identity.
    """

    model: ModelRecord
    digest: str


def fit_to_start(config: PretrainConfig, given: Container[str], model: ModelRecord) -> tuple[PretrainConfig, Start]:
    """Return the config with the model settings that were not given taken from `model`, and the checked start.

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
    for key in FIXED:
        mine, value = changes.pop(key, None), getattr(theirs, key)
        # null stands for that of the given model.
        reason = f"{mine}, but {value} in {source}, from which the run starts; leave it out"
        require(mine in (None, value), f"model.{key}", reason)
    has_table = "rel_pos_embedding" in model.parameters
    # Without a table no bias, so that the run begins with the function that the given model computes. With one, this is
    # the start of a generator that is drawn.
    theirs = replace(theirs, relative_position_start="distance" if has_table else "zero")
    require(
        changes.get("use_relative_position", True) or not theirs.use_relative_position,
        "model.use_relative_position",
        f"false, but true in {source}; leave it out",
    )
    positions = len(model.parameters["pos_embedding"])
    given_positions = changes.get("max_position_embeddings", 0)
    require(
        given_positions <= positions,
        "model.max_position_embeddings",
        f"{given_positions} exceeds the {positions} positions of {source}; give {positions} or less",
    )
    queries = len(model.parameters.get("query_embedding", ()))
    if queries and "max_ngram_tokens" in changes:
        mine = changes["max_ngram_tokens"]
        require(mine == queries, "model.max_ngram_tokens", f"{mine}, but {queries} in {source}; leave it out")
    settings = replace(theirs, **changes)
    require(
        config.data.max_seq_len <= settings.max_position_embeddings,
        "data.max_seq_len",
        f"{config.data.max_seq_len} exceeds model.max_position_embeddings {settings.max_position_embeddings}; give "
        f"--data.max_seq_len {settings.max_position_embeddings}, or leave the other key out",
    )
    return replace(config, model=settings), Start(model, digest_of(model.parameters))


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
