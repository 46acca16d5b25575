"""The parameters of the network that is pre-trained (see model/parameters.py)."""

from __future__ import annotations

from dataclasses import dataclass

from ernie_gram.model import parameters
from ernie_gram.model.parameters import (
    EncoderParameters,
    HeadParameters,
    LinearParameters,
    Normal,
    Parameter,
    Shapes,
    shapes_of,
)
from ernie_gram.pretraining.config import PretrainConfig
from ernie_gram.pretraining.sizes import CorpusSizes


@dataclass(frozen=True)
class GeneratorParameters:
    """Of the generator; `ngrams` are the rows of n-grams of a tied head that shares no embeddings."""

    encoder: EncoderParameters
    ngrams: Parameter | None
    head: HeadParameters


@dataclass(frozen=True)
class DetectionParameters:
    """Of the head of replaced token detection."""

    transform: LinearParameters
    output: LinearParameters


@dataclass(frozen=True)
class PretrainParameters:
    """Of the whole network (see network.PretrainModel)."""

    encoder: EncoderParameters
    ngrams: Parameter | None
    head: HeadParameters
    fine: HeadParameters | None
    generator: GeneratorParameters | None
    detection: DetectionParameters | None


def declare(config: PretrainConfig, sizes: CorpusSizes) -> PretrainParameters:
    """Return the parameters that a configuration asks for."""
    model, objective, classes = config.model, config.objective, sizes.classes(config)
    encoder = parameters.encoder(model, model.vocab_size or sizes.tokens, with_queries=objective.has_queries)
    # N-gram embeddings are needed if the output is tied to them, or if samples replace the masked slots.
    ngrams, has_table = classes - sizes.tokens, objective.has_generator or not model.out_emb_size
    return PretrainParameters(
        encoder=encoder,
        ngrams=_ngrams("ngram_embedding", ngrams, model.embedding_size, config) if has_table else None,
        head=parameters.head("mask_lm", model, classes),
        fine=parameters.head("fine_lm", model, sizes.tokens) if objective.has_queries else None,
        generator=_generator(config, sizes) if objective.has_generator else None,
        detection=_detection(config) if objective.rtd_weight else None,
    )


def parameter_shapes(config: PretrainConfig, sizes: CorpusSizes) -> Shapes:
    """Return the shape of every parameter by name."""
    return shapes_of(declare(config, sizes))


def _ngrams(name: str, rows: int, size: int, config: PretrainConfig) -> Parameter | None:
    return parameters.table(name, rows, size, config.model.initializer_range) if rows else None


def _generator(config: PretrainConfig, sizes: CorpusSizes) -> GeneratorParameters:
    main, model, shares = config.model, config.generator.model(config.model), config.generator.share_embeddings
    classes, width = sizes.classes(config), main.embedding_size if shares else None
    ngrams = 0 if shares or model.out_emb_size else classes - sizes.tokens
    return GeneratorParameters(
        parameters.encoder(model, main.vocab_size or sizes.tokens, "generator_", width),
        _ngrams("generator_ngram_embedding", ngrams, model.hidden_size, config),
        parameters.head("generator_mask_lm", model, classes, width, shares),
    )


def _detection(config: PretrainConfig) -> DetectionParameters:
    size, start = config.model.hidden_size, Normal(config.model.initializer_range)
    return DetectionParameters(
        parameters.linear("rtd_trans_fc", size, size, start), parameters.linear("rtd_out_fc", size, 1, start)
    )
