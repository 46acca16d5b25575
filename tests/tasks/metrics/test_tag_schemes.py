"""Tag schemes."""

from __future__ import annotations

import random

import pytest

from tasks.metrics.entities import Entity, TagReader, entities_of, tag_set, tags_of, to_iob2


@pytest.mark.parametrize(
    ("scheme", "tags", "expected"),
    [
        ("IOB1", "I-A I-A O I-A B-A I-A I-B", "B-A I-A O B-A B-A I-A B-B"),
        ("IOB2", "B-A I-A O B-A B-A I-A B-B", "B-A I-A O B-A B-A I-A B-B"),
        ("BIOES", "B-A E-A O S-A B-A E-A S-B", "B-A I-A O B-A B-A I-A B-B"),
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
        ("O S-B S-I", (), "O B-S I-S"),
        ("O B-S I-S", (), "O B-S I-S"),
        ("S-B S-I B-B B-I", (), "B-S I-S B-B I-B"),
        ("B-S E-S", (), "B-S E-S"),
        ("B-M I-M", (), "B-M I-M"),
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


def test_entities_and_tags_are_converted_into_each_other() -> None:
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


def test_the_longest_of_overlapping_entities_is_tagged() -> None:
    inner, outer, crossing = Entity("company", 2, 4), Entity("book", 1, 6), Entity("name", 5, 7)
    assert entities_of(tags_of([inner, outer, crossing], 8)) == (outer,)
    assert entities_of(tags_of([Entity("a", 0, 2), Entity("b", 1, 3)], 3)) == (Entity("a", 0, 2),)


def test_the_tag_set_has_upstreams_order() -> None:
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
