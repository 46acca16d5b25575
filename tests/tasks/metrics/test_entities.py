"""Tag schemes, conlleval and CLUENER's scores."""

from __future__ import annotations

import random

import pytest

from tasks.metrics.entities import Entity, TagReader, cluener, conlleval, entities_of, tag_set, tags_of, to_iob2


@pytest.mark.parametrize(
    ("scheme", "tags", "expected"),
    [
        ("BMES", "B-A M-A E-A S-A S-A O O", "B-A I-A I-A B-A B-A O O"),
        ("MSRA's train file has an I- after O", "O I-ORG I-ORG", "O B-ORG I-ORG"),
        ("an I- after the end", "B-A E-A I-A", "B-A I-A B-A"),
        ("types with a dash", "B-A-x I-A-x", "B-A-x I-A-x"),
    ],
)
def test_all_schemes_become_iob2(scheme: str, tags: str, expected: str) -> None:
    assert to_iob2(tags.split()) == tuple(expected.split()), scheme
    assert to_iob2(expected.split()) == tuple(expected.split())


@pytest.mark.parametrize("tag", ["", "B", "B-", "X-PER", "PER", "o"])
def test_other_tags_are_refused(tag: str) -> None:
    with pytest.raises(ValueError, match="is neither O nor B-TYPE"):
        to_iob2(["O", tag])


@pytest.mark.parametrize(
    ("written", "types", "expected"),
    [
        ("T-B T-I P-B A1-S O", (), "B-T I-T B-P S-A1 O"),
        ("B_a_b I_a_b a_b_S O", (), None),
        ("B_person_name L_person_name U-x O", (), "B-person_name E-person_name S-x O"),
        ("name_W name-M", (), "S-name I-name"),
        # Every tag could be a letter and a type, or a type and a letter.
        ("S-B O", (), None),
        ("B-B B-I", (), None),
        ("B-I", (), None),
        ("S-S", (), None),
        ("S-S", ("S",), "S-S"),
        ("B-B B-I", ("B",), "B-B I-B"),
        ("B-I", ("I", "PER"), "B-I"),
        ("S-B S-I", ("B", "I"), "S-B S-I"),
        ("B-PER PER-I", (), None),
        ("B-PER PER", (), None),
    ],
)
def test_letters_are_before_all_types_or_after_them(written: str, types: tuple[str, ...], expected: str | None) -> None:
    reader = TagReader(types, {})
    if expected is None:
        with pytest.raises(ValueError, match="the tag '"):
            reader.read(written.split())
    else:
        assert reader.read(["O", *written.split()]) == ("O", *expected.split())


def test_all_rows_of_a_file_have_the_form_of_the_first_with_entities() -> None:
    reader = TagReader(None, {"x": "PER-I"})
    with pytest.raises(ValueError, match="'PER'"):
        reader.read(["PER", "B-PER"])
    assert [reader.read(row.split()) for row in ("O O", "PER-B x", "B-S")] == [("O", "O"), ("B-PER", "I-PER"), ("S-B",)]
    with pytest.raises(ValueError, match="'I-PER'"):
        reader.read(["PER-B", "I-PER"])


def test_entities_and_tags_are_converted_into_each_other_the_longest_of_overlapping_ones() -> None:
    draw = random.Random(3)
    for _ in range(300):
        entities, start = [], 0
        for _ in range(draw.randrange(5)):
            start += draw.randrange(3)
            end = start + draw.randrange(1, 4)
            entities.append(Entity(draw.choice("AB"), start, end))
            start = end
        tags = tags_of(entities, start + 2)
        assert entities_of(tags) == tuple(entities)
        assert len(tags) == start + 2
    inner, outer, crossing = Entity("company", 2, 4), Entity("book", 1, 6), Entity("name", 5, 7)
    assert entities_of(tags_of([inner, outer, crossing], 8)) == (outer,)
    assert entities_of(tags_of([Entity("a", 0, 2), Entity("b", 1, 3)], 3)) == (Entity("a", 0, 2),)
    assert tag_set(["PER", "ORG"]) == ("B-PER", "I-PER", "B-ORG", "I-ORG", "O")


def begins(tags: list[str], index: int) -> bool:
    """Return whether an entity begins at a token, by the rules in conlleval."""
    before = tags[index - 1] if index else "O"
    if tags[index] == "O":
        return False
    return before == "O" or before[2:] != tags[index][2:] or tags[index][0] in "BS" or before[0] in "ES"


def plain_entities(tags: list[str]) -> list[Entity]:
    found = []
    for first in range(len(tags)):
        if begins(tags, first):
            last = first
            while last + 1 < len(tags) and tags[last + 1] != "O" and not begins(tags, last + 1):
                last += 1
            found.append(Entity(tags[first][2:], first, last + 1))
    return found


@pytest.mark.parametrize("prefixes", ["BI", "I", "BIES"])
def test_entities_of_any_sequence_follow_the_rules_of_conlleval(prefixes: str) -> None:
    draw = random.Random(4)
    choices = ["O", *(f"{prefix}-{kind}" for prefix in prefixes for kind in ("PER", "LOC"))]
    for _ in range(500):
        tags = draw.choices(choices, k=draw.randint(0, 9))
        assert list(entities_of(tags)) == plain_entities(tags), tags


GOLD = [["B-PER", "I-PER", "O", "B-LOC"], ["O", "B-ORG"], ["B-LOC", "I-LOC", "O"]]
PREDICTIONS = [["B-PER", "I-PER", "O", "I-LOC"], ["B-ORG", "I-ORG"], ["B-LOC", "O", "B-LOC"]]


def test_conlleval_counts_entities_with_the_right_type_and_ends() -> None:
    scores = conlleval(GOLD, PREDICTIONS)
    expected = {"precision": 100 * 2 / 5, "recall": 100 * 2 / 4, "f1": 100 * 2 * 2 / 9}
    expected |= {"token_accuracy": 100 * 4 / 9, "non_o_accuracy": 100 * 3 / 6, "tokens": 9}
    expected |= {"gold_entities": 4, "predicted_entities": 5, "correct_entities": 2}
    expected |= {"LOC_precision": 100 / 3, "LOC_recall": 50, "LOC_f1": 40, "LOC_found": 3}
    expected |= {"ORG_precision": 0, "ORG_recall": 0, "ORG_f1": 0, "ORG_found": 1}
    expected |= {"PER_precision": 100, "PER_recall": 100, "PER_f1": 100, "PER_found": 1}
    assert scores == pytest.approx(expected)
    assert conlleval([["B-PER"], ["I-PER"]], [["B-PER"], ["I-PER"]])["gold_entities"] == 2
    scores = conlleval([["O", "O"]], [["O", "O"]])
    assert (scores["precision"], scores["recall"], scores["f1"], scores["token_accuracy"]) == (0, 0, 0, 100)
    assert conlleval([[]], [[]])["token_accuracy"] == 0


@pytest.mark.parametrize(
    ("gold", "predicted", "accuracy"),
    [
        ("B-A I-A O", "I-A I-A O", 100),
        ("B-A I-A O B-A", "I-A I-A O B-A", 75),
        ("I-A O B-A", "B-A O B-A", 100),
        ("O I-A B-A", "O B-A I-A", 200 / 3),
        ("I-A I-A O", "O I-A O", 200 / 3),
        ("B-A I-A E-A", "O B-A E-A", 100 / 3),
        ("B-A I-A E-A S-A", "B-A I-A O S-A", 75),
        ("B-A I-A E-A S-A", "B-A I-A I-A B-A", 100),
    ],
)
def test_tags_of_one_scheme_are_compared_as_they_are(gold: str, predicted: str, accuracy: float) -> None:
    """As conlleval does, also those that break the scheme; others are compared in IOB2."""
    assert conlleval([gold.split()], [predicted.split()])["token_accuracy"] == pytest.approx(accuracy)


def test_cluener_averages_the_types_by_surface() -> None:
    gold = [
        {"name": {"李明": [[0, 1], [5, 6]]}, "address": {"北京": [[3, 4]]}},
        {"name": {"李明": [[0, 1]]}},
    ]
    predictions = [
        {"name": {"李明": [[0, 1]], "明": [[6, 6]]}, "address": {}},
        {"name": {"李明": [[7, 8]]}, "game": {"围棋": [[0, 1]]}},
    ]
    # Names: 2 right of 3 predicted and 2 gold.
    expected = {"f1": (4 / 5 + 0 + 0) / 3, "name_f1": 4 / 5, "address_f1": 0, "game_f1": 0}
    assert cluener(gold, predictions) == pytest.approx(expected)
    assert cluener([{}], [{}])["f1"] == cluener(gold, [{}, {}])["f1"] == 0
