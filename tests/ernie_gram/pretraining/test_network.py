"""The names and shapes of all parameters; upstream's files depend on these names."""

from __future__ import annotations

import dataclasses

import pytest

from ernie_gram.model.config import ModelConfig
from ernie_gram.pretraining.config import DataConfig, GeneratorConfig, ObjectiveConfig, PretrainConfig
from ernie_gram.pretraining.network import build_evaluation, parameter_shapes
from ernie_gram.pretraining.sizes import CorpusSizes
from tests.support.objectives import OBJECTIVES
from tests.support.static_programs import fresh_scope, training_program

H, A, E, O, TOKENS, NGRAMS, LENGTH = 8, 2, 6, 4, 30, 12, 16
MODEL = ModelConfig(
    hidden_size=H,
    num_hidden_layers=2,
    num_attention_heads=A,
    max_position_embeddings=LENGTH,
    out_emb_size=O,
    sent_type_vocab_size=3,
)

ALWAYS = {
    "word_embedding": [TOKENS, H],
    "pos_embedding": [LENGTH, H],
    "pre_encoder_layer_norm_scale": [H],
    "pre_encoder_layer_norm_bias": [H],
}
for i in range(2):
    for part in ("query", "key", "value", "output"):
        ALWAYS[f"encoder_layer_{i}_multi_head_att_{part}_fc.w_0"] = [H, H]
        ALWAYS[f"encoder_layer_{i}_multi_head_att_{part}_fc.b_0"] = [H]
    for part in ("att", "ffn"):
        ALWAYS[f"encoder_layer_{i}_post_{part}_layer_norm_scale"] = [H]
        ALWAYS[f"encoder_layer_{i}_post_{part}_layer_norm_bias"] = [H]
    ALWAYS[f"encoder_layer_{i}_ffn_fc_0.w_0"] = [H, 4 * H]
    ALWAYS[f"encoder_layer_{i}_ffn_fc_0.b_0"] = [4 * H]
    ALWAYS[f"encoder_layer_{i}_ffn_fc_1.w_0"] = [4 * H, H]
    ALWAYS[f"encoder_layer_{i}_ffn_fc_1.b_0"] = [H]

RELATIVE = {"rel_pos_embedding": [33, A]}
LOW_RANK = {
    "mask_lm_trans_fc.w_0": [H, O],
    "mask_lm_trans_fc.b_0": [O],
    "mask_lm_out_embedding": [TOKENS + NGRAMS, O],
    "mask_lm_out_fc.b_0": [TOKENS + NGRAMS],
}
TIED = {
    "mask_lm_trans_fc.w_0": [H, H],
    "mask_lm_trans_fc.b_0": [H],
    "mask_lm_trans_layer_norm_scale": [H],
    "mask_lm_trans_layer_norm_bias": [H],
    "ngram_embedding": [NGRAMS, H],
    "mask_lm_out_fc.b_0": [TOKENS + NGRAMS],
}
MAPPED = {
    "word_embedding": [TOKENS + 2, E],
    "pos_embedding": [LENGTH, E],
    "sent_embedding": [3, E],
    "pre_encoder_layer_norm_scale": [E],
    "pre_encoder_layer_norm_bias": [E],
    "emb_hidden_mapping": [E, H],
    "emb_hidden_mapping_bias": [H],
}
TOKENS_ONLY = {"mask_lm_out_embedding": [TOKENS, O], "mask_lm_out_fc.b_0": [TOKENS]}

QUERIES = {
    "query_embedding": [8, H],
    "fine_lm_trans_fc.w_0": [H, O],
    "fine_lm_trans_fc.b_0": [O],
    "fine_lm_out_embedding": [TOKENS, O],
    "fine_lm_out_fc.b_0": [TOKENS],
}
DETECTION = {"rtd_trans_fc.w_0": [H, H], "rtd_trans_fc.b_0": [H], "rtd_out_fc.w_0": [H, 1], "rtd_out_fc.b_0": [1]}
h = H // A  # the hidden size of a generator with one head
GENERATOR = {
    "ngram_embedding": [NGRAMS, H],
    "generator_word_projection.w_0": [H, h],
    "generator_word_projection.b_0": [h],
    "generator_pos_embedding": [LENGTH, h],
    "generator_rel_pos_embedding": [33, 1],
    "generator_mask_lm_trans_fc.w_0": [h, O],
    "generator_mask_lm_trans_fc.b_0": [O],
    "generator_mask_lm_out_fc.b_0": [TOKENS + NGRAMS],
}
# The generator has its own encoder parameters, of its own hidden size.
NARROW = {H: h, 4 * H: 4 * h}
GENERATOR |= {
    f"generator_{name}": [NARROW[size] for size in shape]
    for name, shape in ALWAYS.items()
    if name.startswith(("encoder_layer", "pre_encoder"))
}
UNSHARED = {name: shape for name, shape in GENERATOR.items() if "projection" not in name} | {
    "generator_word_embedding": [TOKENS, h],
    "generator_mask_lm_out_embedding": [TOKENS + NGRAMS, O],
}

SHARED, OWN = GeneratorConfig(), GeneratorConfig(share_embeddings=False)

# Test ID: changes to the model, objective, generator, expected shapes by parameter name.
CASES = {
    "default": ({}, OBJECTIVES["explicit"], SHARED, ALWAYS | RELATIVE | LOW_RANK),
    "tied": ({"out_emb_size": 0}, OBJECTIVES["explicit"], SHARED, ALWAYS | RELATIVE | TIED),
    "mapped": (
        {"emb_size": E, "vocab_size": TOKENS + 2, "use_sentence_embedding": True, "use_relative_position": False},
        OBJECTIVES["explicit"],
        SHARED,
        ALWAYS | LOW_RANK | MAPPED,
    ),
    "contiguous": ({}, OBJECTIVES["contiguous"], SHARED, ALWAYS | RELATIVE | LOW_RANK | TOKENS_ONLY),
    "full": ({}, ObjectiveConfig(), SHARED, ALWAYS | RELATIVE | LOW_RANK | QUERIES | DETECTION | GENERATOR),
    "unshared": ({}, ObjectiveConfig(), OWN, ALWAYS | RELATIVE | LOW_RANK | QUERIES | DETECTION | UNSHARED),
}


@pytest.mark.parametrize("case", CASES)
def test_parameters_have_the_expected_names_and_shapes(case: str) -> None:
    change, objective, generator, expected = CASES[case]
    config = PretrainConfig(
        model=dataclasses.replace(MODEL, **change),  # type: ignore[arg-type]
        data=DataConfig(max_seq_len=LENGTH),
        objective=objective,
        generator=generator,
    )
    sizes = CorpusSizes(TOKENS, NGRAMS)
    assert {name: list(shape) for name, shape in parameter_shapes(config, sizes).items()} == expected
    with fresh_scope():
        for program in (training_program(config, sizes), build_evaluation(config, sizes, 1)):
            found = {p.name: list(p.shape) for p in program.main.global_block().all_parameters() if p.name in expected}
            assert found == expected
            assert program.parameters == sorted(expected)
