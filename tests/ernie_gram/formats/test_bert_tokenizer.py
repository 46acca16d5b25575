"""The tokenizer of BERT's folders: tokenizer.json, tokenizer_config.json and what else transformers reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ernie_gram.formats.registry import read_model, write_model
from reader.errors import InputError
from tests.ernie_gram.formats.test_bert import BERT, TOKENIZER, TOKENS, bare, bert_folder
from tests.support.model_folders import VOCABULARY


def test_words_of_another_kind_are_refused(tmp_path: Path) -> None:
    folder = bert_folder(tmp_path / "bert")
    (folder / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": True, "word_tokenizer_type": "mecab"}))
    with pytest.raises(InputError, match=r"tokenizer_config\.json: word_tokenizer_type"):
        read_model(folder)
    (folder / "vocab.txt").unlink()
    (folder / "tokenizer_config.json").unlink()
    other = TOKENIZER | {"model": {**TOKENIZER["model"], "continuing_subword_prefix": "@@"}}
    (folder / "tokenizer.json").write_text(json.dumps(other))
    with pytest.raises(InputError, match=r"tokenizer\.json: continuing_subword_prefix"):
        read_model(folder)


def bert_rules(**changes: Any) -> dict[str, Any]:
    rules = {"clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True}
    return {"type": "BertNormalizer", **rules, **changes}


def sequence(*normalizers: dict[str, Any]) -> dict[str, Any]:
    return {"type": "Sequence", "normalizers": list(normalizers)}


NFKC, CASED = {"type": "NFKC"}, bert_rules(lowercase=False)
UNCASED_PARTS = sequence({"type": "NFD"}, {"type": "Lowercase"}, {"type": "StripAccents"})
GENERAL, LOWER, KEPT = (
    {"tokenizer_class": "PreTrainedTokenizerFast"},
    {"do_lower_case": True},
    {"do_lower_case": False},
)


# As transformers 5.24.0 reads them, and 4.57.1 where the normalizer is not a Sequence.
@pytest.mark.parametrize(
    ("parts", "settings", "lowercase", "noted"),
    [
        ({"normalizer": bert_rules()}, {}, True, ""),
        ({"normalizer": bert_rules()}, KEPT, False, ""),
        ({"normalizer": {"lowercase": False}}, {}, True, ""),
        ({"normalizer": CASED}, GENERAL, False, ""),
        ({"normalizer": CASED}, GENERAL | LOWER, False, ""),
        ({"normalizer": bert_rules(strip_accents=False)}, LOWER, True, ""),
        ({"normalizer": bert_rules(strip_accents=False)}, GENERAL, True, "strip_accents False"),
        ({"normalizer": bert_rules(clean_text=False)}, GENERAL, True, "clean_text False"),
        ({"normalizer": bert_rules(handle_chinese_chars=False)}, GENERAL, True, "handle_chinese_chars False"),
        ({"normalizer": sequence(NFKC, CASED)}, LOWER, True, "NFKC"),
        ({"normalizer": sequence(NFKC, CASED)}, GENERAL, False, "NFKC"),
        ({"normalizer": sequence(NFKC, sequence(bert_rules()))}, {}, True, "NFKC"),
        ({"normalizer": UNCASED_PARTS}, GENERAL, True, "NFD, Lowercase, StripAccents"),
        ({"normalizer": None}, GENERAL, False, "null"),
        ({"pre_tokenizer": {"type": "BertPreTokenizer"}}, LOWER, True, ""),
        ({"pre_tokenizer": {"type": "WhitespaceSplit"}}, LOWER, True, "WhitespaceSplit"),
        ({}, {"do_basic_tokenize": False}, True, "do_basic_tokenize False"),
    ],
)
def test_rules_of_tokenizer_json_are_read_as_transformers_does_or_said(
    parts: dict[str, Any], settings: dict[str, Any], lowercase: bool, noted: str, tmp_path: Path
) -> None:
    folder = bert_folder(tmp_path / "bert", bare(BERT), vocabulary=False)
    (folder / "tokenizer.json").write_text(json.dumps(TOKENIZER | parts))
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    model = read_model(folder)
    notes = [note for note in model.notes if not note.startswith("left out")]
    assert model.vocabulary.lowercase == lowercase
    assert notes == ([f"the folder's tokenizer has {noted}: token IDs may differ"] if noted else [])


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("tokenizer_config.json", LOWER | {"additional_special_tokens": ["[ENT]"]}),
        ("tokenizer_config.json", LOWER | {"extra_special_tokens": {"entity": "[ENT]"}}),
        ("tokenizer_config.json", LOWER | {"added_tokens_decoder": {"19": {"content": "[ENT]", "special": True}}}),
        ("special_tokens_map.json", {"additional_special_tokens": [{"content": "[ENT]"}], "mask_token": "[MASK]"}),
        ("tokenizer.json", TOKENIZER | {"added_tokens": [{"id": 19, "content": "[ENT]"}]}),
        ("added_tokens.json", {"[ENT]": 19}),
    ],
)
def test_added_tokens_that_are_cut_in_a_text_are_said(file: str, content: dict[str, Any], tmp_path: Path) -> None:
    folder = bert_folder(tmp_path / "bert")
    (folder / file).write_text(json.dumps(content))
    assert "the added tokens [ENT]: token IDs may differ" in read_model(folder).notes[-1]


def test_a_hole_in_the_ids_of_tokenizer_json_is_a_row_that_is_never_used(tmp_path: Path) -> None:
    folder = bert_folder(tmp_path / "bert", vocabulary=False)
    hole = next(i for i, token in enumerate(VOCABULARY.tokens) if token.isalpha())
    ids = {token: i for i, token in enumerate(VOCABULARY.tokens) if i != hole}
    (folder / "tokenizer.json").write_text(json.dumps({"model": {"type": "WordPiece", "vocab": ids}}))
    model = read_model(folder)
    assert {token: model.vocabulary.ids[token] for token in ids} == ids
    assert model.vocabulary.encode(VOCABULARY.tokens[hole]) != [hole]
    assert len(model.vocabulary) == len(model.parameters["word_embedding"]) == TOKENS
    write_model(model, tmp_path / "again", "bert")
    assert read_model(tmp_path / "again").vocabulary.tokens == model.vocabulary.tokens


@pytest.mark.parametrize("token", ["a\tb", "a\nb", "\r", "\ud800"])
def test_tokens_that_no_line_of_a_vocabulary_can_hold_are_refused(token: str, tmp_path: Path) -> None:
    folder = bert_folder(tmp_path / "bert", vocabulary=False)
    ids = {name: i for i, name in enumerate([*VOCABULARY.tokens[:-1], token])}
    (folder / "tokenizer.json").write_text(json.dumps({"model": {"type": "WordPiece", "vocab": ids}}))
    with pytest.raises(InputError, match=rf"{folder / 'tokenizer.json'}: the token "):
        read_model(folder)
