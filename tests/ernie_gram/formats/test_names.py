"""The table of parameter names is complete, and its names are unique. The tests of each format compare them."""

from __future__ import annotations

import pytest

from ernie_gram.formats.names import COLUMNS, Column, names, rows
from tests.support.expected_parameters import ALWAYS, RELATIVE, TIED

POOLER = ["pooled_fc.w_0", "pooled_fc.b_0"]
MAPPING = ["emb_hidden_mapping", "emb_hidden_mapping_bias"]
ENCODER = [*ALWAYS, *RELATIVE, *MAPPING, "sent_embedding"]
HEAD = [name for name in TIED if name != "ngram_embedding"]


def test_the_table_has_every_parameter_of_the_encoder_the_pooler_and_the_tied_head_once() -> None:
    ours = [row[0] for row in rows(2)]
    assert sorted(ours) == sorted([*ENCODER, *POOLER, *HEAD])


@pytest.mark.parametrize("column", COLUMNS)
def test_no_two_parameters_have_the_same_name_in_a_column(column: Column) -> None:
    theirs = [name for name in (row[COLUMNS.index(column)] for row in rows(12)) if name]
    assert len(set(theirs)) == len(theirs)
    missing = {"static": [], "dygraph": MAPPING, "paddlenlp": MAPPING + HEAD, "bert": [*MAPPING, *RELATIVE]}[column]
    assert {*ENCODER, *POOLER, *HEAD} - names(column, 2).keys() == set(missing)
