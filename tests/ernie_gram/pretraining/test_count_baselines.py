"""The predictors that count, against slow definitions with dictionaries."""

from __future__ import annotations

import itertools
import re
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tqdm import tqdm

from ernie_gram.pretraining import count_baselines
from ernie_gram.pretraining.count_baselines import (
    HIDDEN,
    NeighbourCounts,
    _adjacent_units,
    held_out_units,
    main,
)
from reader.batches.feeder import Feeder, Masking
from reader.corpus.memmap import Corpus
from tests.support.commands import assert_one_line_error, call
from tests.support.runs import evaluations


class SlowCounts:
    """The same probabilities from dictionaries."""

    def __init__(self, corpus: Corpus) -> None:
        self.classes = corpus.num_units
        self.units, self.pairs = Counter[int](), Counter[tuple[int, int]]()
        for first, last in zip(corpus.documents[:-1], corpus.documents[1:], strict=True):
            document = corpus.units[first:last].tolist()
            self.units.update(document)
            self.pairs.update(itertools.pairwise(document))
        self.followers: dict[int, Counter[int]] = {}
        for (left, unit), count in self.pairs.items():
            self.followers.setdefault(left, Counter())[unit] = count

    def frequency(self, unit: int) -> float:
        return (self.units[unit] + 1) / (sum(self.units.values()) + self.classes)

    def after(self, left: int, unit: int) -> float:
        if left not in self.followers:
            return self.frequency(unit)
        followers = self.followers[left]
        return (followers[unit] + len(followers) * self.frequency(unit)) / (sum(followers.values()) + len(followers))

    def joint(self, left: int, unit: int, right: int) -> float:
        before = self.frequency(unit) if left == HIDDEN else self.after(left, unit)
        return before if right == HIDDEN else before * self.after(unit, right)

    def both(self, left: int, unit: int, right: int) -> float:
        return self.joint(left, unit, right) / sum(self.joint(left, u, right) for u in range(self.classes))


@pytest.fixture(scope="module")
def held_out(built: Path) -> Feeder:
    return Feeder(Corpus(built / "held_out"), 32, Masking(explicit=True, fraction=0.3, seed=5))


def test_the_units_are_those_of_the_evaluation_and_masked_neighbours_are_hidden(held_out: Feeder) -> None:
    masked = held_out_units(held_out, 20)
    batches = list(held_out.held_out_batches(7, 0, 1, 20))
    units, left, right = masked
    np.testing.assert_array_equal(units, np.concatenate([batch["unit_ids"] for batch in batches]))
    # Explicit masking: one slot per masked unit; its neighbours in the batch are the last token of the left unit, the
    # first token of the right unit, [MASK], [CLS] or [SEP].
    corpus = held_out.corpus
    tokens = [[u] for u in range(corpus.info.num_tokens)]
    tokens += [part.tolist() for part in np.split(corpus.ngram_tokens, corpus.ngram_offsets[1:-1])]
    specials = held_out.special_ids
    left_tokens, right_tokens = [], []
    for batch in batches:
        ids = batch["input_ids"].flatten()
        left_tokens += ids[batch["slots"] - 1].tolist()
        right_tokens += ids[batch["slots"] + 1].tolist()
    for neighbours, shown, end in ((left, left_tokens, -1), (right, right_tokens, 0)):
        for unit, token in zip(neighbours.tolist(), shown, strict=True):
            if unit == HIDDEN:
                assert token in (specials.mask, specials.cls, specials.sep)
            else:
                assert token == tokens[unit][end]
    assert 0 < (left == HIDDEN).sum() < len(left)
    contiguous = held_out_units(Feeder(corpus, 32, Masking(explicit=False, fraction=0.3, seed=5)), 20)
    np.testing.assert_array_equal(contiguous, masked)


def test_the_probabilities_equal_their_definitions(corpus: Corpus, held_out: Feeder) -> None:
    masked = held_out_units(held_out, 5)
    # A unit without followers, pairs that do not occur, and all combinations of hidden neighbours.
    slow, counts = SlowCounts(corpus), NeighbourCounts(corpus)
    lonely = next(unit for unit in range(corpus.num_units) if unit not in slow.followers)
    extra = np.array([[7, lonely, 7], [lonely, 7, 9], [9, HIDDEN, 7], [9, 7, HIDDEN], [9, HIDDEN, HIDDEN]]).T
    masked = np.concatenate([extra, masked[:, :30]], axis=1)
    rows = masked.T.tolist()
    expected = {
        "frequency": [slow.frequency(unit) for unit, _, _ in rows],
        "left": [slow.frequency(unit) if left == HIDDEN else slow.after(left, unit) for unit, left, _ in rows],
        "both": [slow.both(left, unit, right) for unit, left, right in rows],
    }
    np.testing.assert_allclose(np.exp(counts.predict(masked)), list(expected.values()), rtol=1e-9)


@pytest.mark.parametrize("block", [5, 64])
def test_pairs_are_counted_in_blocks(corpus: Corpus, block: int) -> None:
    units, starts = corpus.units.tolist(), set(corpus.documents.tolist())
    pairs = Counter((units[i - 1], units[i]) for i in range(1, len(units)) if i not in starts)
    counts = _adjacent_units(corpus, block).tocoo()
    assert dict(zip(zip(counts.row.tolist(), counts.col.tolist(), strict=True), counts.data, strict=True)) == pairs


def test_the_command_takes_its_settings_from_the_run(finished: Path, bars: dict[str, tqdm[Any]]) -> None:
    done = call(main, str(finished)).ok()
    lines = done.stdout.splitlines()
    assert [line.split(":")[0] for line in lines] == ["unit frequencies", "left neighbour", "both neighbours"]
    values = [float(re.search(r"perplexity ([\d,.]+),", line)[1].replace(",", "")) for line in lines]  # type: ignore[index]
    assert values == sorted(values, reverse=True)  # each predictor knows more than the one before
    masking, _, both = bars.values()
    assert both.n == both.total > masking.n == masking.total > 0
    # The run's own evaluation has the first predictor beside the model, on the same masked units.
    assert f"perplexity {evaluations(finished)[0]['frequency_perplexity']:.0f}," in lines[0]


def test_moved_corpora_are_read_and_others_are_refused(built: Path, run_copy: Path, tmp_path: Path) -> None:
    config, expected = (run_copy / "config.yaml").read_text(), call(main, str(run_copy)).stdout
    for name, other in (("corpus", "held_out"), ("held_out", "corpus")):
        moved = Path(shutil.copytree(built / name, tmp_path / name))
        (run_copy / "config.yaml").write_text(config.replace(str(built / name), str(moved)))
        assert call(main, str(run_copy)).stdout == expected
        (run_copy / "config.yaml").write_text(config.replace(f" {name}: {built / name}", f" {name}: {built / other}"))
        assert_one_line_error(call(main, str(run_copy)), f"paths.{name}: {built / other} ")


def test_runs_without_these_masked_units_are_refused(
    built: Path, finished: Path, finetuned: Path, run_copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert_one_line_error(call(main, str(tmp_path)), f"{tmp_path}: ")
    assert_one_line_error(call(main, str(finetuned)), f"{finetuned / 'config.yaml'}: ")
    path = run_copy / "config.yaml"
    path.write_text(path.read_text().replace(str(built / "held_out"), "null"))
    assert_one_line_error(call(main, str(run_copy)), f"{path}: paths.held_out: ")
    monkeypatch.setattr(count_baselines, "CUT_VERSION", count_baselines.CUT_VERSION + 1)
    assert_one_line_error(call(main, str(finished)), f"{finished}: ")
