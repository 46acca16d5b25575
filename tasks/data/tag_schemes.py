"""Tag schemes of tagging tasks: conversion to IOB2, and between tags and entities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

OUTSIDE = "O"
# In BIOES and BMES, E marks the last token of an entity and S an entity of one token; in BMES, M marks a token inside.
STARTS = frozenset("BS")
ENDS = frozenset("ES")
PREFIXES = STARTS | ENDS | frozenset("IM")


class Entity(NamedTuple):
    """The tokens [start, end) and their type."""

    type: str
    start: int
    end: int


def split_tag(tag: str) -> tuple[str, str]:
    """Return the prefix of a tag and the type of its entity; the type of `O` is "".

    Raises ValueError for a tag without a known prefix.
    """
    prefix, _, entity_type = tag.partition("-")
    if tag != OUTSIDE and (prefix not in PREFIXES or not entity_type):
        raise ValueError(f"the tag {tag!r} is neither O nor B-TYPE or I-TYPE (nor M-, E-, S- and a type)")
    return prefix, entity_type


def to_iob2(tags: Sequence[str]) -> tuple[str, ...]:
    """Return tags in the scheme IOB2 that mark the same entities as tags in IOB1, IOB2, BIOES or BMES.

    In IOB1 an entity begins with I-, unless it follows an entity of its own type. A type that differs from that of the
    token before always begins an entity, as in conlleval. Raises ValueError as `split_tag` does.
    """
    converted, open_type = [], ""
    for tag in tags:
        prefix, entity_type = split_tag(tag)
        starts = prefix in STARTS or entity_type != open_type
        converted.append(f"{'B' if starts else 'I'}-{entity_type}" if entity_type else OUTSIDE)
        open_type = "" if prefix in ENDS else entity_type
    return tuple(converted)


def entities_of(tags: Sequence[str]) -> tuple[Entity, ...]:
    """Return the entities that tags mark, in order of their starts; `to_iob2` says where an entity begins.

    Raises ValueError as `split_tag` does.
    """
    entities: list[Entity] = []
    for index, tag in enumerate(to_iob2(tags)):
        prefix, entity_type = split_tag(tag)
        if prefix == "B":
            entities.append(Entity(entity_type, index, index + 1))
        elif entity_type:
            entities[-1] = entities[-1]._replace(end=index + 1)
    return tuple(entities)


def tags_of(entities: Sequence[Entity], num_tokens: int) -> tuple[str, ...]:
    """Return the IOB2 tags of entities. Of entities that overlap, the longest is marked, or the first if equally long.

    An entity inside another has no place in one row of tags; the outer one keeps more tokens right.
    """
    tags = [OUTSIDE] * num_tokens
    for entity in sorted(entities, key=lambda entity: (entity.start - entity.end, entity.start)):
        if all(tag == OUTSIDE for tag in tags[entity.start : entity.end]):
            inside = [f"I-{entity.type}"] * (entity.end - entity.start - 1)
            tags[entity.start : entity.end] = [f"B-{entity.type}", *inside]
    return tuple(tags)


def tag_set(entity_types: Sequence[str]) -> tuple[str, ...]:
    """Return all IOB2 tags: B- and I- of each type in the given order, and `O` last, as in upstream's label maps."""
    return (*(f"{prefix}-{entity_type}" for entity_type in entity_types for prefix in "BI"), OUTSIDE)
