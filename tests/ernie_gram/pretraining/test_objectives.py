"""The loss terms against equations 1, 2, 3, 5 and 6 of the paper in numpy; their gradients, samples and parameters.

The tests of equation 4 (attention) are in tests/ernie_gram/model/test_encoder.py.
"""

from __future__ import annotations

import copy
import dataclasses
from typing import Any

import numpy as np
import paddle
import pytest

from ernie_gram.pretraining.chunked_softmax import CrossEntropy, SoftmaxOptions
from ernie_gram.pretraining.config import PretrainConfig
from ernie_gram.pretraining.network import PretrainModel, build_evaluation, parameter_shapes
from ernie_gram.pretraining.sizes import CorpusSizes
from ernie_gram.pretraining.terms.generator import ReplacedTokens
from ernie_gram.pretraining.terms.term import Encoded
from reader.batches.feeder import Feeder, Masking
from reader.batches.fields import Batch
from reader.corpus.memmap import Corpus
from tests.support import reference_model as reference
from tests.support.small_model import MODEL, NGRAMS, TOKENS, config_of, random_batch
from tests.support.static_programs import Arrays, fresh_program, fresh_scope, run, training_program


def forward(
    config: PretrainConfig, batch: Batch, has_gradients: bool = False
) -> tuple[dict[str, float], np.ndarray | None, Arrays, Arrays]:
    """Return the mean of every term, the samples (None without a generator), the parameters, and their gradients."""
    names: list[str] = []
    trained: list[str] = []

    def build(feeds: dict) -> list:
        model = PretrainModel(config, CorpusSizes(TOKENS, NGRAMS))
        model.train()
        encoded = model.encode(feeds, SoftmaxOptions(True, 1))
        terms = model.losses(encoded)
        means = [term.total / term.count for term in terms]
        names.extend(term.name for term in terms)
        gradients = []
        if has_gradients:
            total = paddle.add_n([mean * term.weight for mean, term in zip(means, terms, strict=True)])
            parameters = paddle.static.default_main_program().global_block().all_parameters()
            trained.extend(parameter.name for parameter in parameters)
            gradients = paddle.static.gradients([total], parameters)
        sampled = [encoded.generated.sampled] if encoded.generated is not None else []
        return [*means, *gradients, *sampled]

    fetched, p = run(build, batch)
    means = dict(zip(names, (float(value) for value in fetched), strict=False))
    gradients = dict(zip(trained, fetched[len(names) :], strict=False))
    return means, fetched[-1] if config.objective.has_generator else None, p, gradients


TIED_NARROW = {"out_emb_size": 0, "emb_size": 16, "use_sentence_embedding": True}
PADDED_VOCABULARY = {"vocab_size": TOKENS + 3}
# Test ID: rung, changes to the model, changes to the generator. Equation 3 is "explicit" and "comprehensive" summed.
# Equation 5 is the sum of "generator" and of the main model's terms on the generator's samples. Equation 6 is "rtd".
CASES: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "contiguous-equation_1": ("contiguous", {}, {}),
    "explicit-equation_2": ("explicit", {}, {}),
    "cnp-equation_3": ("cnp", {}, {}),
    "enrm-equations_5_and_6": ("enrm", {}, {}),
    "both-equations_3_5_and_6": ("both", {}, {}),
    "both-no_relative_position": ("both", {"use_relative_position": False}, {}),
    "both-tied-layer_norm_eps": ("both", {"out_emb_size": 0, "layer_norm_eps": 1e-3}, {}),
    "both-intermediate_size": ("both", {"intermediate_size": 30}, {}),
    "both-tied": ("both", {"out_emb_size": 0}, {}),
    "both-tied-emb_size-one_generator_layer": ("both", TIED_NARROW, {"num_hidden_layers": 1}),
    "both-vocab_size-unshared": ("both", PADDED_VOCABULARY, {"share_embeddings": False, "num_attention_heads": 3}),
    "both-tied-unshared": ("both", {"out_emb_size": 0}, {"share_embeddings": False}),
    "contiguous-tied-vocab_size": ("contiguous", {"out_emb_size": 0, **PADDED_VOCABULARY}, {}),
}


@pytest.mark.parametrize(("rung", "model", "generator"), CASES.values(), ids=CASES)
def test_every_loss_term_equals_its_equation(rung: str, model: dict[str, Any], generator: dict[str, Any]) -> None:
    config = config_of(rung, dataclasses.replace(MODEL, **model), **generator)
    batch = random_batch(rung)
    found, sampled, p, _ = forward(config, batch)
    expected = reference.terms(config.model, config.generator.model(config.model), p, batch, sampled, TOKENS)
    assert found == pytest.approx(expected, abs=1e-5)
    assert [*found] == [*expected]


@pytest.mark.parametrize(
    "rung",
    [pytest.param("contiguous", id="contiguous-equation_1"), pytest.param("both", id="both-equations_3_5_and_6")],
)
def test_gradients_equal_finite_differences_of_the_equations(rung: str) -> None:
    config = config_of(rung)
    weights = {"comprehensive": 2.0, "generator": 0.5, "rtd": 3.0} if rung == "both" else {"contiguous": 2.0}
    changes = {f"{name}_weight": weight for name, weight in weights.items()}
    config = dataclasses.replace(config, objective=dataclasses.replace(config.objective, **changes))
    batch = random_batch(rung)
    _, sampled, p, gradients = forward(config, batch, has_gradients=True)
    small = config.generator.model(config.model)
    weight_of = {"explicit": 1.0, **weights}

    def objective(moved: Arrays) -> float:
        # The samples are fixed, because no gradient flows through sampling.
        values = reference.terms(config.model, small, moved, batch, sampled, TOKENS)
        return sum(weight_of[name] * value for name, value in values.items())

    random = np.random.default_rng(2)
    exact = {name: value.astype(np.float64) for name, value in p.items()}
    for name in [*random.permutation(sorted(exact))[:12], *(n for n in exact if "embedding" in n)]:
        direction = random.standard_normal(exact[name].shape)
        slope = (
            objective(exact | {name: exact[name] + 1e-5 * direction})
            - objective(exact | {name: exact[name] - 1e-5 * direction})
        ) / 2e-5
        assert (gradients[name] * direction).sum() == pytest.approx(slope, rel=1e-3, abs=2e-5), name


def test_encoder_inputs_do_not_reveal_the_length_of_a_masked_ngram(corpus: Corpus) -> None:
    """In the same context, the shortest and the longest n-gram of the lexicon give identical encoder inputs."""
    tokens = np.diff(corpus.ngram_offsets)
    short, long = int(tokens.argmin()), int(tokens.argmax())
    assert tokens[short] == 2
    assert tokens[long] >= 5
    batches = []
    for ngram in (short, long):
        feeder = Feeder(corpus, 32, Masking(True, 0.15, 3, queries=True))
        # Of six single tokens and the n-gram, one unit is masked. Find an epoch in which it is the n-gram.
        units = np.array([10, 11, 12, corpus.info.num_tokens + ngram, 13, 14, 15], corpus.units.dtype)
        feeder.corpus = copy.copy(corpus)
        feeder.corpus.units = units
        feeder.starts = feeder.documents = np.array([0, len(units)])
        found = (feeder.batch(np.zeros(1, np.int64), np.array([epoch])) for epoch in range(100))
        batches.append(next(batch for batch in found if batch["unit_ids"][0] == units[3]))
    one, other = batches
    for name in ("input_ids", "lengths", "slots"):
        assert np.array_equal(one[name], other[name])
    assert one["fine_labels"].tolist() == corpus.ngram_tokens[corpus.ngram_offsets[short] :][:2].tolist()
    assert one["query_ranks"].tolist() == [[0, 1]]
    assert other["query_ranks"].tolist() == [list(range(tokens[long]))]
    assert set(other["query_slots"][0]) == {one["slots"][0]} == {4}


def test_equation_6_a_sample_equal_to_the_original_is_not_a_replacement() -> None:
    """If every sample equals its original, the RTD loss is that of a sequence without replacements."""
    batch = random_batch("enrm")
    hidden = np.random.default_rng(4).standard_normal((60, 24)).astype("float32")
    half_wrong = (batch["coarse_labels"] + np.arange(9) % 2) % TOKENS  # every second sample is a replacement

    def loss(sampled: np.ndarray) -> tuple[float, Arrays]:
        def build(feeds: dict) -> list:
            model = PretrainModel(config_of("enrm"), CorpusSizes(TOKENS, NGRAMS))
            generated = CrossEntropy(*[feeds["sampled"]] * 4)
            encoded = Encoded(feeds, None, feeds["hidden"], feeds["hidden"], None, generated)  # type: ignore[arg-type]
            term = ReplacedTokens()
            return list(term.loss(model.part(term), model, encoded))

        (total, count), p = run(build, {**batch, "hidden": hidden, "sampled": sampled})
        assert count == batch["lengths"].sum()
        return float(total), p

    real = np.arange(20) < batch["lengths"][:, None]
    for sampled in (batch["coarse_labels"], half_wrong):
        found, p = loss(sampled)
        z = reference.linear(reference.gelu(reference.linear(hidden, p, "rtd_trans_fc")), p, "rtd_out_fc")[:, 0]
        replaced = np.zeros(60)
        replaced[batch["slots"]] = sampled != batch["coarse_labels"]
        expected = (np.logaddexp(0, z) - replaced * z)[real.reshape(-1)].sum()
        assert found == pytest.approx(expected, rel=1e-5)


def samples_of(config: PretrainConfig, batch: Batch, seeds: list[int]) -> list[np.ndarray]:
    """Return what the generator samples for every masked slot, once per seed."""
    with fresh_program() as (executor, main, startup):
        feeds = {name: paddle.static.data(name, [None] * v.ndim, str(v.dtype)) for name, v in batch.items()}
        model = PretrainModel(config, CorpusSizes(TOKENS, NGRAMS))
        encoded = model.encode(feeds, SoftmaxOptions(False, 1))
        paddle.seed(1)
        executor.run(startup)
        found = []
        for seed in seeds:
            paddle.seed(seed)
            found.append(executor.run(main, feed=batch, fetch_list=[encoded.generated.sampled])[0])
        return found


def test_equation_5_samples_differ_between_seeds_and_temperatures_and_repeat_for_the_same() -> None:
    """The distributions themselves are tested with the softmax."""
    config, batch = config_of("enrm"), random_batch("enrm")
    one, two, again = samples_of(config, batch, [1, 2, 1])
    assert np.array_equal(one, again)
    assert not np.array_equal(one, two)
    colder = dataclasses.replace(config, generator=dataclasses.replace(config.generator, temperature=0.2))
    seeds = list(range(1, 9))
    assert not np.array_equal(samples_of(colder, batch, seeds), samples_of(config, batch, seeds))


MAPPED = {"emb_size": 6, "vocab_size": TOKENS + 2, "use_sentence_embedding": True, "use_relative_position": False}
# Test ID: rung, changes to the model, changes to the generator.
NETWORKS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "default": ("explicit", {}, {}),
    "tied": ("explicit", {"out_emb_size": 0}, {}),
    "mapped": ("explicit", MAPPED, {}),
    "contiguous": ("contiguous", {}, {}),
    "full": ("full", {}, {}),
    "unshared": ("full", {}, {"share_embeddings": False}),
}


@pytest.mark.parametrize(("rung", "model", "generator"), NETWORKS.values(), ids=NETWORKS)
def test_parameters_have_the_expected_names_and_shapes(
    rung: str, model: dict[str, Any], generator: dict[str, Any]
) -> None:
    config, sizes = config_of(rung, dataclasses.replace(MODEL, **model), **generator), CorpusSizes(TOKENS, NGRAMS)
    expected = parameter_shapes(config, sizes)
    with fresh_scope():
        for program in (training_program(config, sizes), build_evaluation(config, sizes, 1)):
            found = {p.name: tuple(p.shape) for p in program.main.global_block().all_parameters() if p.name in expected}
            assert found == expected
            assert program.parameters == sorted(expected)
    # The narrow encoder of a generator has as many positions.
    assert rung != "full" or expected["generator_pos_embedding"] == (64, 8)
