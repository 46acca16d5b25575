"""The names and shapes of all trained parameters, computed from a configuration (see model/ and network.py)."""

from __future__ import annotations

from math import prod

from ernie_gram.model.config import NUM_BUCKETS, ModelConfig
from ernie_gram.planning.sizes import CorpusSizes
from ernie_gram.pretraining.config import PretrainConfig

Shapes = dict[str, tuple[int, ...]]


def parameter_shapes(config: PretrainConfig, sizes: CorpusSizes) -> Shapes:
    """Return the shape of every trained parameter by name."""
    model, objective = config.model, config.objective
    classes = sizes.classes(config)
    ngrams = classes - sizes.tokens
    shapes: Shapes = {"word_embedding": (model.vocab_size or sizes.tokens, model.embedding_size)}
    shapes |= _encoder("", model)
    if objective.has_queries:
        shapes["query_embedding"] = (model.max_ngram_tokens, model.embedding_size)
    if ngrams and (objective.has_generator or not model.out_emb_size):
        shapes["ngram_embedding"] = (ngrams, model.embedding_size)
    shapes |= _head("mask_lm", model, classes)
    if objective.has_queries:
        shapes |= _head("fine_lm", model, sizes.tokens)
    if objective.has_generator:
        shapes |= _generator(config, sizes, classes)
    if objective.rtd_weight:
        shapes |= _linear("rtd_trans_fc", model.hidden_size, model.hidden_size)
        shapes |= _linear("rtd_out_fc", model.hidden_size, 1)
    return shapes


def count_parameters(shapes: Shapes) -> int:
    """Return the number of numbers in parameters of these shapes."""
    return sum(prod(shape) for shape in shapes.values())


def _linear(name: str, size_in: int, size_out: int) -> Shapes:
    return {f"{name}.w_0": (size_in, size_out), f"{name}.b_0": (size_out,)}


def _norm(name: str, size: int) -> Shapes:
    return {f"{name}_scale": (size,), f"{name}_bias": (size,)}


def _encoder(prefix: str, model: ModelConfig) -> Shapes:
    """Return the parameters of an encoder except for its word embedding."""
    size, hidden, inner = model.embedding_size, model.hidden_size, model.feed_forward_size
    shapes: Shapes = {f"{prefix}pos_embedding": (model.max_position_embeddings, size)}
    if model.use_sentence_embedding:
        shapes[f"{prefix}sent_embedding"] = (model.sent_type_vocab_size, size)
    shapes |= _norm(f"{prefix}pre_encoder_layer_norm", size)
    if size != hidden:
        shapes |= {f"{prefix}emb_hidden_mapping": (size, hidden), f"{prefix}emb_hidden_mapping_bias": (hidden,)}
    if model.use_relative_position:
        shapes[f"{prefix}rel_pos_embedding"] = (NUM_BUCKETS, model.num_attention_heads)
    for i in range(model.num_hidden_layers):
        name = f"{prefix}encoder_layer_{i}"
        for part in ("query", "key", "value", "output"):
            shapes |= _linear(f"{name}_multi_head_att_{part}_fc", hidden, hidden)
        shapes |= _norm(f"{name}_post_att_layer_norm", hidden)
        shapes |= _linear(f"{name}_ffn_fc_0", hidden, inner) | _linear(f"{name}_ffn_fc_1", inner, hidden)
        shapes |= _norm(f"{name}_post_ffn_layer_norm", hidden)
    return shapes


def _head(prefix: str, model: ModelConfig, classes: int, with_table: bool = True) -> Shapes:
    """Return the parameters of a prediction head; `with_table` is false if its table is another head's."""
    size = model.out_emb_size or model.embedding_size
    shapes = _linear(f"{prefix}_trans_fc", model.hidden_size, size)
    if not model.out_emb_size:
        shapes |= _norm(f"{prefix}_trans_layer_norm", size)
    elif with_table:
        shapes[f"{prefix}_out_embedding"] = (classes, size)
    return shapes | {f"{prefix}_out_fc.b_0": (classes,)}


def _generator(config: PretrainConfig, sizes: CorpusSizes, classes: int) -> Shapes:
    main, model, shares = config.model, config.generator.model(config.model), config.generator.share_embeddings
    shapes = _encoder("generator_", model)
    if shares:
        shapes |= _linear("generator_word_projection", main.embedding_size, model.embedding_size)
    else:
        shapes["generator_word_embedding"] = (main.vocab_size or sizes.tokens, model.embedding_size)
        if not model.out_emb_size and classes > sizes.tokens:
            shapes["generator_ngram_embedding"] = (classes - sizes.tokens, model.hidden_size)
    head = _head("generator_mask_lm", model, classes, with_table=not shares)
    if shares and not model.out_emb_size:
        # A tied head that shares its table maps to the width of the main model's embeddings.
        size = main.embedding_size
        head |= _linear("generator_mask_lm_trans_fc", model.hidden_size, size)
        head |= _norm("generator_mask_lm_trans_layer_norm", size)
    return shapes | head
