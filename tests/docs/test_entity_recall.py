"""Recall of entities by length and by groups of sentences: counts made by hand, and intervals known from statistics."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from tasks.metrics.entities import Entity
from tests.support.studies import study

LOC, PER = "LOC", "PER"
STUDY = study("entity_recall")
Column, recalls = STUDY.Column, STUDY.recalls
columns_by_group, columns_by_length = STUDY.columns_by_group, STUDY.columns_by_length
GOLD = [
    [Entity(PER, 0, 2), Entity(LOC, 4, 5)],
    [],
    [Entity(LOC, 0, 5), Entity(LOC, 6, 9), Entity(PER, 9, 10)],
    [Entity(PER, 1, 2)],
]
ONE = [
    [Entity(PER, 0, 2), Entity(LOC, 4, 6)],  # the second one ends elsewhere
    [Entity(LOC, 0, 1)],
    [Entity(LOC, 0, 5), Entity(PER, 6, 9), Entity(PER, 9, 10)],  # the second one has another type
    [],
]
OTHER = [*GOLD[:3], []]


def sentence(*lengths: int) -> list[Entity]:
    """Return entities with these lengths, one after another."""
    ends = np.cumsum(lengths)
    return [Entity(LOC, int(end - length), int(end)) for end, length in zip(ends, lengths, strict=True)]


def test_an_entity_is_found_with_its_type_and_both_ends_and_counts_where_its_length_is() -> None:
    columns = columns_by_length(GOLD, [ONE, OTHER], longest=3)
    gold = {column.name: column.gold.tolist() for column in columns}
    assert gold == {"all": [2, 0, 3, 1], "1": [1, 0, 1, 1], "2": [1, 0, 0, 0], "3+": [0, 0, 2, 0]}
    first, second = ({column.name: column.found[run].tolist() for column in columns} for run in range(2))
    assert first == {"all": [1, 0, 2, 0], "1": [0, 0, 1, 0], "2": [1, 0, 0, 0], "3+": [0, 0, 1, 0]}
    assert second == {name: [*counts[:3], 0] for name, counts in gold.items()}


def test_sentences_are_grouped_by_the_average_length_of_their_entities() -> None:
    lengths = [(1,), (2,), (1, 2), (), (3,), (1, 1), (4, 8), (2, 2), (1, 2), (1,), (1, 1, 2)]
    gold = [sentence(*each) for each in lengths]
    everything = columns_by_length(gold, [gold], 4)[0]
    groups = columns_by_group(gold, everything)
    members = {column.name: np.flatnonzero(column.gold).tolist() for column in groups}
    # Ten sentences, so two for a group, but the three with the average 1 stay together. Then 7 are left for 4 groups.
    assert members == {"1": [0, 5, 9], "1.33": [10], "1.5": [2, 8], "2": [1, 7], "3 to 6": [4, 6]}
    for column in groups:
        np.testing.assert_array_equal(column.found[0], column.gold)
    assert [column.gold.sum() for column in groups] == [4, 3, 4, 3, 3]


@pytest.mark.parametrize("seed", range(5))
def test_every_sentence_with_entities_is_in_one_group_and_the_groups_are_in_order(seed: int) -> None:
    random = np.random.default_rng(seed)
    gold = [sentence(*random.integers(1, 8, random.integers(0, 5))) for _ in range(200)]
    groups = columns_by_group(gold, columns_by_length(gold, [gold], 4)[0])
    assert len(groups) == 5
    sizes = [(column.gold > 0).sum() for column in groups]
    assert sum(sizes) == sum(map(bool, gold))
    assert max(sizes) < 2 * min(sizes)
    averages = [np.mean([end - start for _, start, end in each]) if each else 0.0 for each in gold]
    bounds = [[averages[row] for row in np.flatnonzero(column.gold)] for column in groups]
    for before, after in pairwise(bounds):
        assert max(before) < min(after)


def test_recall_is_the_mean_over_runs_of_the_same_name_with_differences_to_the_first() -> None:
    columns = columns_by_length(GOLD, [ONE, OTHER, ONE], longest=3)
    rows = recalls(columns, ["a", "b", "a"])
    assert [(row["length"], row["sentences"], row["entities"]) for row in rows][:2] == [("all", 3, 6), ("1", 3, 3)]
    found = {name: [row["recall"][name] for row in rows] for name in rows[0]["recall"]}
    assert list(found) == ["a", "b"]
    assert [cell["runs"] for cell in found["a"]] == [
        pytest.approx([100 * share] * 2) for share in (1 / 2, 1 / 3, 1, 1 / 2)
    ]
    assert [cell["mean"] for cell in found["b"]] == pytest.approx([100 * 5 / 6, 100 * 2 / 3, 100, 100])
    assert [cell["difference"] for cell in found["a"]] == [None] * 4
    expected = [100 / 3, 100 / 3, 0, 50]
    assert [cell["difference"][0] for cell in found["b"] if cell["difference"]] == pytest.approx(expected)
    mixed = recalls(columns, ["a", "a", "a"])[0]["recall"]["a"]
    assert (mixed["mean"], mixed["runs"]) == (pytest.approx(1100 / 18), pytest.approx([50, 500 / 6, 50]))


def test_intervals_are_those_of_a_binomial_and_paired_for_differences() -> None:
    random = np.random.default_rng(3)
    size, share = 2000, 0.3
    gold = np.ones(size, np.int64)
    first = (random.random(size) < share).astype(np.int64)
    # The second model finds the same, and 40 more.
    second = first.copy()
    second[np.flatnonzero(first == 0)[:40]] = 1
    column = Column("all", gold, np.stack([first, second]))
    one, other = recalls([column], ["one", "other"])[0]["recall"].values()
    p = first.mean()
    half = 100 * 1.96 * np.sqrt(p * (1 - p) / size)
    assert [one["low"], one["high"]] == pytest.approx([100 * p - half, 100 * p + half], abs=0.15 * half)
    half = 100 * 1.96 * np.sqrt(0.02 * 0.98 / size)
    assert other["difference"] == pytest.approx([2, 2 - half, 2 + half], abs=0.15 * half)
    # Of two runs of a model that find the opposite, the mean does not vary.
    both = recalls([Column("all", gold, np.stack([first, 1 - first]))], ["one", "one"])[0]["recall"]["one"]
    assert [both["low"], both["high"]] == pytest.approx([50, 50])
