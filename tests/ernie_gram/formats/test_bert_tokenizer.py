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


def test_tokens_and_rules_that_ours_lacks_are_said_and_other_words_refused(tmp_path: Path) -> None:
    folder = bert_folder(tmp_path / "bert")
    (folder / "added_tokens.json").write_text(json.dumps({VOCABULARY.tokens[-1]: 3, "<user>": 99}))
    (folder / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": True, "do_basic_tokenize": False}))
    notes = " ".join(read_model(folder).notes)
    assert ": <user>; " in notes
    assert "do_basic_tokenize is False" in notes
    (folder / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": True, "word_tokenizer_type": "mecab"}))
    with pytest.raises(InputError, match=r"tokenizer_config\.json: word_tokenizer_type"):
        read_model(folder)
    (folder / "vocab.txt").unlink()
    (folder / "tokenizer_config.json").unlink()
    rules = {"lowercase": False, "strip_accents": True, "handle_chinese_chars": False}
    added = [{"id": 0, "content": VOCABULARY.tokens[0]}, {"id": 99, "content": "<url>"}]
    (folder / "tokenizer.json").write_text(json.dumps(TOKENIZER | {"normalizer": rules, "added_tokens": added}))
    notes = " ".join(read_model(folder).notes)
    assert all(name in notes for name in ("lower case", "<url>"))
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
        ({"normalizer": bert_rules()}, None, True, []),
        ({"normalizer": bert_rules()}, KEPT, False, []),
        ({"normalizer": CASED}, None, True, ["lower case"]),
        ({"normalizer": CASED}, GENERAL, False, []),
        ({"normalizer": CASED}, GENERAL | LOWER, False, []),
        ({"normalizer": bert_rules(strip_accents=False)}, LOWER, True, []),
        ({"normalizer": bert_rules(strip_accents=False)}, GENERAL, True, ["strip_accents"]),
        ({"normalizer": bert_rules(clean_text=False)}, GENERAL, True, ["clean_text"]),
        ({"normalizer": sequence(NFKC, CASED)}, LOWER, True, ["NFKC"]),
        ({"normalizer": sequence(NFKC, CASED)}, GENERAL, False, ["NFKC"]),
        ({"normalizer": sequence(NFKC, CASED)}, None, True, ["lower case", "NFKC"]),
        ({"normalizer": sequence(NFKC, sequence(bert_rules()))}, None, True, ["NFKC"]),
        ({"normalizer": UNCASED_PARTS}, GENERAL, True, ["NFD and Lowercase and StripAccents"]),
        ({"normalizer": NFKC}, GENERAL, False, ["NFKC"]),
        ({"normalizer": None}, GENERAL, False, ["null"]),
        ({"normalizer": None}, LOWER, True, ["null"]),
        ({"pre_tokenizer": {"type": "BertPreTokenizer"}}, LOWER, True, []),
        ({"pre_tokenizer": {"type": "WhitespaceSplit"}}, LOWER, True, ["WhitespaceSplit"]),
        ({"model": TOKENIZER["model"] | {"max_input_chars_per_word": 3}}, LOWER, True, ["max_input_chars_per_word"]),
    ],
)
def test_rules_of_tokenizer_json_are_read_as_transformers_does_or_said(
    parts: dict[str, Any], settings: dict[str, Any] | None, lowercase: bool, noted: list[str], tmp_path: Path
) -> None:
    folder = bert_folder(tmp_path / "bert", bare(BERT), vocabulary=False)
    (folder / "tokenizer.json").write_text(json.dumps(TOKENIZER | parts))
    if settings is not None:
        (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    model = read_model(folder)
    notes = [note for note in model.notes if not note.startswith("left out")]
    assert model.vocabulary.lowercase == lowercase
    assert len(notes) == len(noted), notes
    for part in noted:
        assert any(part in note for note in notes), (part, notes)


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("tokenizer_config.json", LOWER | {"additional_special_tokens": ["[ENT]"]}),
        ("tokenizer_config.json", LOWER | {"extra_special_tokens": {"entity": "[ENT]"}}),
        ("tokenizer_config.json", LOWER | {"extra_special_tokens": ["[ENT]", "[MASK]", "dog"]}),
        ("tokenizer_config.json", LOWER | {"added_tokens_decoder": {"19": {"content": "[ENT]", "special": True}}}),
        ("special_tokens_map.json", {"additional_special_tokens": [{"content": "[ENT]"}], "mask_token": "[MASK]"}),
        ("tokenizer.json", TOKENIZER | {"added_tokens": [{"id": 19, "content": "[ENT]"}]}),
        ("added_tokens.json", {"[ENT]": 19}),
    ],
)
def test_a_special_token_of_the_vocabulary_that_is_cut_in_a_text_is_said(
    file: str, content: dict[str, Any], tmp_path: Path
) -> None:
    folder = bert_folder(tmp_path / "bert")
    (folder / "vocab.txt").write_text("\n".join([*VOCABULARY.tokens[:-1], "[ENT]"]))
    before = read_model(folder).notes
    (folder / file).write_text(json.dumps(content))
    [note] = [note for note in read_model(folder).notes if note not in before]
    assert "special tokens" in note
    assert ": [ENT]; " in note


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
