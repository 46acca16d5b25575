"""The part of the page about lexicons says where the n-grams and their counts come from."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ernie_gram.reporting.lexicon_part import lexicon_part
from reader.lexicon.own_list import given_lexicon
from reader.tokenization.vocabulary_file import load_vocabulary


@pytest.mark.parametrize("own", [False, True])
def test_the_page_says_whether_a_lexicon_was_counted(built: Path, tmp_path: Path, own: bool) -> None:
    if own:
        (tmp_path / "phrases.txt").write_text("of the\nin the\n")
        given_lexicon(tmp_path / "phrases.txt", load_vocabulary(built / "vocab.txt")).save(tmp_path / "lexicon.tsv")
    else:
        for name in ("lexicon.tsv", "lexicon.tsv.json"):
            shutil.copy(built / name, tmp_path / name)
    run: Any = SimpleNamespace(folder=tmp_path, name="run", held_out={})
    page, notes = lexicon_part([run])
    assert notes == []
    assert ("those of the list phrases.txt; they were not counted" in page) == own
    assert ("those of the lexicon's own text" in page.replace("&#x27;", "'")) == (not own)
