"""The terms of the objective: against equations in numpy, their gradients, and what may not leak into what."""

from __future__ import annotations

import copy
import dataclasses
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ernie_gram.model.config import ModelConfig
from ernie_gram.pretraining.config import DataConfig, GeneratorConfig, PretrainConfig
from ernie_gram.training.config import OptimizerConfig
from reader.batches.feeder import Feeder, Masking
from reader.batches.fields import Batch
from reader.corpus.memmap import Corpus
from tests.support import reference_model as reference
from tests.support.objectives import OBJECTIVES
from tests.support.static_programs import Arrays, fresh_scope, run

import paddle  # isort: skip

TOKENS, NGRAMS = 40, 12
MODEL = ModelConfig(
    hidden_size=24,
    num_hidden_layers=2,
    num_attention_heads=6,
    max_position_embeddings=64,
    out_emb_size=10,
    hidden_dropout_prob=0,
    attention_probs_dropout_prob=0,
    max_ngram_tokens=4,
)
# "token" differs from "contiguous" by its corpus, "full" from "both" by relative position.
RUNGS = ("contiguous", "explicit", "cnp", "enrm", "both")


def config_of(rung: str, model: ModelConfig = MODEL, **generator: Any) -> PretrainConfig:
    return PretrainConfig(
        model=model,
        data=DataConfig(max_seq_len=32, batch_size=8),
        objective=OBJECTIVES[rung],
        generator=GeneratorConfig(**generator),
        optimizer=OptimizerConfig(learning_rate=5e-3, warmup_steps=5),
    )


def random_batch(rung: str, seed: int = 0) -> Batch:
    """Three sequences of random tokens with random masks; two query rows and more for some, in no order to lean on."""
    random = np.random.default_rng(seed)
    lengths, width = np.array([20, 7, 12]), 20
    ids = random.integers(5, TOKENS, (3, width))
    slots = np.sort(
        np.concatenate([b * width + random.choice(np.arange(1, n - 1), 3, False) for b, n in enumerate(lengths)])
    )
    ids.reshape(-1)[slots] = 4
    batch: Batch = {"input_ids": ids, "lengths": lengths, "slots": slots}
    if rung == "contiguous":
        return batch | {"token_labels": random.integers(5, TOKENS, 9)}
    batch["coarse_labels"] = random.integers(5, TOKENS + NGRAMS, 9)
    if rung in ("cnp", "both"):
        batch["query_slots"], batch["query_ranks"] = np.zeros((3, 6), int), np.zeros((3, 6), int)
        rows = []
        for b, count in enumerate((6, 3, 4)):
            batch["query_slots"][b, :count] = random.integers(1, lengths[b] - 1, count)
            batch["query_ranks"][b, :count] = random.integers(0, 4, count)
            rows += [b * 6 + k for k in range(count)]
        batch["fine_rows"], batch["fine_labels"] = np.array(rows), random.integers(5, TOKENS, len(rows))
    return batch


def forward(
    config: PretrainConfig, batch: Batch, seed: int = 1
) -> tuple[dict[str, float], np.ndarray | None, Arrays, Arrays]:
    """Every term's mean, the samples, the parameters, and the gradient of the objective by parameter."""
    from ernie_gram.pretraining.network import PretrainModel, VocabularySizes
    from ernie_gram.pretraining.objectives import encode, softmax_options, terms_of

    names: list[str] = []
    trained: list[str] = []

    def build(feeds: dict) -> list:
        model = PretrainModel(config, VocabularySizes(TOKENS, NGRAMS))
        model.train()
        softmax = softmax_options(config, True, 1)
        encoded = encode(model, feeds, softmax)
        terms = terms_of(config.objective)
        means = []
        for term in terms:
            loss = term.loss(model, encoded, feeds, softmax)
            means.append(loss.total / loss.count)
        names.extend(term.name for term in terms)
        total = paddle.add_n([mean * term.weight for mean, term in zip(means, terms, strict=True)])
        parameters = paddle.static.default_main_program().global_block().all_parameters()
        trained.extend(parameter.name for parameter in parameters)
        gradients = paddle.static.gradients([total], parameters)
        sampled = [encoded.generated.sampled] if encoded.generated is not None else []
        return [*means, *gradients, *sampled]

    fetched, p = run(build, batch, seed)
    means = dict(zip(names, (float(value) for value in fetched), strict=False))
    gradients = dict(zip(trained, fetched[len(names) :], strict=False))
    return means, fetched[-1] if config.objective.has_generator else None, p, gradients


CASES = [
    *((rung, {}, {}) for rung in RUNGS),
    ("both", {"use_relative_position": False}, {}),
    ("both", {"out_emb_size": 0}, {}),
    ("both", {"out_emb_size": 0, "emb_size": 16, "use_sentence_embedding": True}, {"num_hidden_layers": 1}),
    ("both", {"vocab_size": TOKENS + 3}, {"share_embeddings": False, "num_attention_heads": 3}),
    ("both", {"out_emb_size": 0}, {"share_embeddings": False}),
    ("contiguous", {"out_emb_size": 0, "vocab_size": TOKENS + 3}, {}),
]


@pytest.mark.parametrize(("rung", "model", "generator"), CASES)
def test_every_term_is_the_equation(rung: str, model: dict[str, Any], generator: dict[str, Any]) -> None:
    config = config_of(rung, dataclasses.replace(MODEL, **model), **generator)
    batch = random_batch(rung)
    found, sampled, p, _ = forward(config, batch)
    expected = reference.terms(config.model, config.generator.model(config.model), p, batch, sampled, TOKENS)
    assert found == pytest.approx(expected, abs=1e-5)
    assert (
        list(found)
        == {
            "contiguous": ["token"],
            "explicit": ["coarse"],
            "cnp": ["coarse", "fine"],
            "enrm": ["coarse", "generator", "rtd"],
            "both": ["coarse", "fine", "generator", "rtd"],
        }[rung]
    )


@pytest.mark.parametrize("rung", ["contiguous", "both"])
def test_gradients_are_the_slopes_of_the_equations(rung: str) -> None:
    config = config_of(rung)
    weights = (
        {"generator_weight": 0.5, "rtd_weight": 3.0, "fine_weight": 2.0} if rung == "both" else {"fine_weight": 2.0}
    )
    config = dataclasses.replace(config, objective=dataclasses.replace(config.objective, **weights))
    batch = random_batch(rung)
    _, sampled, p, gradients = forward(config, batch)
    small = config.generator.model(config.model)
    by_name = {"token": 2.0, "coarse": 1.0, "fine": 2.0, "generator": 0.5, "rtd": 3.0}

    def objective(moved: Arrays) -> float:
        # The samples stay what they were: no gradient goes through the drawing.
        values = reference.terms(config.model, small, moved, batch, sampled, TOKENS)
        return sum(by_name[name] * value for name, value in values.items())

    random = np.random.default_rng(2)
    exact = {name: value.astype(np.float64) for name, value in p.items()}
    for name in [*random.permutation(sorted(exact))[:12], *(n for n in exact if "embedding" in n)]:
        direction = random.standard_normal(exact[name].shape)
        slope = (
            objective(exact | {name: exact[name] + 1e-5 * direction})
            - objective(exact | {name: exact[name] - 1e-5 * direction})
        ) / 2e-5
        assert (gradients[name] * direction).sum() == pytest.approx(slope, rel=1e-3, abs=2e-5), name


def encoder_outputs(batch: Batch) -> tuple[np.ndarray, np.ndarray]:
    """Context rows [B, L, H] and query rows [B, K, H] of a batch, always by the same parameters."""
    from ernie_gram.model.encoder import Encoder, QueryRows

    def build(feeds: dict) -> list:
        encoder = Encoder(MODEL, TOKENS, with_queries=True)
        encoder.eval()
        queries = QueryRows(feeds["query_ranks"], feeds["query_slots"]) if "query_ranks" in feeds else None
        return [value for value in encoder(feeds["input_ids"], feeds["lengths"], queries=queries) if value is not None]

    used = {
        name: value for name, value in batch.items() if name in ("input_ids", "lengths", "query_ranks", "query_slots")
    }
    outputs, _ = run(build, used)
    rows = len(batch["lengths"])
    return outputs[0].reshape(rows, -1, 24), outputs[-1].reshape(rows, -1, 24)


def test_no_query_row_changes_the_context_or_another_query_row() -> None:
    batch = random_batch("cnp")
    context, queries = encoder_outputs(batch)
    without = {name: value for name, value in batch.items() if not name.startswith("query")}
    assert np.array_equal(encoder_outputs(without)[0], context)
    # Other questions in all but the second row of each sequence; then more rows; then only that row.
    other = batch | {"query_slots": (batch["query_slots"] + 1) % 7, "query_ranks": (batch["query_ranks"] + 1) % 4}
    for name in ("query_slots", "query_ranks"):
        other[name][:, 1] = batch[name][:, 1]
    more = batch | {name: np.concatenate([batch[name], other[name]], 1) for name in ("query_slots", "query_ranks")}
    alone = batch | {name: batch[name][:, 1:2] for name in ("query_slots", "query_ranks")}
    for changed, column in ((other, 1), (more, 1), (alone, 0)):
        changed_context, changed_queries = encoder_outputs(changed)
        assert np.array_equal(changed_context, context)
        np.testing.assert_allclose(changed_queries[:, column], queries[:, 1], atol=1e-6)
    assert not np.allclose(encoder_outputs(other)[1][:, 0], queries[:, 0], atol=1e-2)


def test_how_long_a_masked_ngram_was_cannot_be_seen(corpus: Corpus) -> None:
    """The same context around n-grams of the fewest and of the most tokens: the encoder's inputs are identical."""
    tokens = np.diff(corpus.ngram_offsets)
    short, long = int(tokens.argmin()), int(tokens.argmax())
    assert tokens[short] == 2
    assert tokens[long] >= 5
    batches = []
    for ngram in (short, long):
        feeder = Feeder(corpus, 32, Masking(True, 0.15, 3, queries=True))
        # Six single tokens and the n-gram: one of seven is masked; find an epoch in which it is the n-gram.
        units = np.array([10, 11, 12, corpus.info.num_tokens + ngram, 13, 14, 15], corpus.units.dtype)
        feeder.corpus = copy.copy(corpus)
        feeder.corpus.units, feeder.starts = units, np.array([0, len(units)])
        found = (feeder.batch(np.zeros(1, np.int64), np.array([epoch])) for epoch in range(100))
        batches.append(next(batch for batch in found if batch["unit_ids"][0] == units[3]))
    one, other = batches
    for name in ("input_ids", "lengths", "slots"):
        assert np.array_equal(one[name], other[name])
    assert one["fine_labels"].tolist() == corpus.ngram_tokens[corpus.ngram_offsets[short] :][:2].tolist()
    assert one["query_ranks"].tolist() == [[0, 1]]
    assert other["query_ranks"].tolist() == [list(range(tokens[long]))]
    assert set(other["query_slots"][0]) == {one["slots"][0]} == {4}


def test_a_sample_that_is_the_original_is_not_a_replacement() -> None:
    """With every sample right, RTD's loss is that of a sequence in which nothing was replaced."""
    from ernie_gram.pretraining.chunked_softmax import CrossEntropy
    from ernie_gram.pretraining.network import PretrainModel, VocabularySizes
    from ernie_gram.pretraining.objectives import Encoded, rtd_loss

    batch = random_batch("enrm")
    hidden = np.random.default_rng(4).standard_normal((60, 24)).astype("float32")
    wrong = (batch["coarse_labels"] + np.arange(9) % 2) % TOKENS  # every second one is replaced

    def loss(sampled: np.ndarray) -> tuple[float, Arrays]:
        def build(feeds: dict) -> list:
            model = PretrainModel(config_of("enrm"), VocabularySizes(TOKENS, NGRAMS))
            generated = CrossEntropy(*[feeds["sampled"]] * 4)
            found = rtd_loss(model, Encoded(feeds["hidden"], None, generated), feeds, None)  # type: ignore[arg-type]
            return [found.total, found.count]

        (total, count), p = run(build, {**batch, "hidden": hidden, "sampled": sampled})
        assert count == batch["lengths"].sum()
        return float(total), p

    real = np.arange(20) < batch["lengths"][:, None]
    for sampled in (batch["coarse_labels"], wrong):
        found, p = loss(sampled)
        z = reference.linear(reference.gelu(reference.linear(hidden, p, "rtd_trans_fc")), p, "rtd_out_fc")[:, 0]
        replaced = np.zeros(60)
        replaced[batch["slots"]] = sampled != batch["coarse_labels"]
        expected = (np.logaddexp(0, z) - replaced * z)[real.reshape(-1)].sum()
        assert found == pytest.approx(expected, rel=1e-5)


def samples_of(config: PretrainConfig, batch: Batch, seeds: list[int]) -> list[np.ndarray]:
    from ernie_gram.pretraining.network import PretrainModel, VocabularySizes
    from ernie_gram.pretraining.objectives import encode, softmax_options

    with fresh_scope() as executor:
        main, startup = paddle.static.Program(), paddle.static.Program()
        with paddle.static.program_guard(main, startup), paddle.utils.unique_name.guard():
            feeds = {name: paddle.static.data(name, [None] * v.ndim, str(v.dtype)) for name, v in batch.items()}
            encoded = encode(
                PretrainModel(config, VocabularySizes(TOKENS, NGRAMS)), feeds, softmax_options(config, False, 1)
            )
        paddle.seed(1)
        executor.run(startup)
        assert encoded.generated is not None
        found = []
        for seed in seeds:
            paddle.seed(seed)
            found.append(executor.run(main, feed=batch, fetch_list=[encoded.generated.sampled])[0])
        return found


def test_samples_differ_by_seed_and_repeat() -> None:
    one, two, again = samples_of(config_of("enrm"), random_batch("enrm"), [1, 2, 1])
    assert np.array_equal(one, again)
    assert not np.array_equal(one, two)
    assert one.min() >= 0
    assert one.max() < TOKENS + NGRAMS


def test_samples_differ_between_ranks_and_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a training step seeds Paddle with, and that these seeds draw differently."""
    from ernie_gram.training.trainer import Trainer

    seeds: list[int] = []

    def update(seed: int, step: int, rank: int) -> None:
        program = SimpleNamespace(
            schedule=SimpleNamespace(step=lambda step: None), run=lambda *_: {"loss": 1.0, "grad_norm": 1.0}
        )
        trainer = SimpleNamespace(
            job=SimpleNamespace(seed=seed, learning_rate=lambda step: 0.1),
            step=step,
            world=SimpleNamespace(rank=rank),
            program=program,
            executor=None,
        )
        Trainer._update(trainer, {})  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(paddle, "seed", seeds.append)
        for _ in range(2):
            for seed, step, rank in [(1, 0, 0), (1, 0, 1), (1, 1, 0), (1, 1, 1), (2, 0, 0)]:
                update(seed, step, rank)
    assert seeds[:5] == seeds[5:]
    samples = samples_of(config_of("enrm"), random_batch("enrm"), seeds[:5])
    assert len({each.tobytes() for each in samples}) == 5


@pytest.mark.parametrize("rung", [*RUNGS, "full"])
def test_one_batch_is_learned_by_heart(corpus: Corpus, rung: str) -> None:
    """Every term goes to nearly nothing on eight real sequences: all are wired to what they are to predict."""
    from ernie_gram.pretraining.network import VocabularySizes
    from tests.support.static_programs import training_program

    model = dataclasses.replace(
        MODEL,
        hidden_size=48,
        out_emb_size=24,
        max_ngram_tokens=8,
        initializer_range=0.1,
        use_relative_position=rung == "full",
    )
    config = config_of(rung, model)
    objective = config.objective
    feeder = Feeder(corpus, 32, Masking(objective.is_explicit, 0.15, 1, objective.has_queries))
    batch = feeder.batch(np.arange(0, 80, 10), np.zeros(8, np.int64))
    with fresh_scope() as executor:
        program = training_program(config, VocabularySizes(corpus.info.num_tokens, corpus.info.num_ngrams))
        paddle.seed(1)
        executor.run(program.startup)
        assert program.schedule is not None
        for step in range(600):
            program.schedule.step(step)
            paddle.seed(step)
            values = program.run(executor, batch)
            terms = {name: float(values[name]) for name in values if name not in ("loss", "grad_norm")}
            if max(terms.values()) < 0.05:
                break
    assert max(terms.values()) < 0.05, terms
