"""Exported programs compute what the executor that trains computes; damaged and incomplete folders are refused."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ernie_gram.api import Model
from ernie_gram.distributed.world import start_world
from ernie_gram.formats.model import ModelRecord
from ernie_gram.inference.description import TextSettings, read_exported
from ernie_gram.inference.export import export_model
from ernie_gram.inference.texts import EncodedText, Guess, TextEncoder, best_units
from ernie_gram.pretraining.config import prediction_config
from ernie_gram.run.checkpoint import write_checksums
from reader.corpus.units import UnitNames
from reader.errors import InputError
from reader.tokenization.sentencepiece import train_sentencepiece
from reader.tokenization.wordpiece import WordPieceVocabulary
from tests.support.commands import python
from tests.support.exported_models import VOCABULARY, random_model, run_exported
from tests.support.small_model import TOKENS


@pytest.fixture(scope="module")
def encoder_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return exported(random_model(None), "encoder", tmp_path_factory.mktemp("encoder") / "model")


@pytest.fixture
def folder(encoder_folder: Path, tmp_path: Path) -> Path:
    """A copy of an exported encoder, which a test may damage."""
    return shutil.copytree(encoder_folder, tmp_path / "model")


def exported(model: ModelRecord, outputs: str, folder: Path) -> Path:
    export_model(model, outputs, folder, start_world("cpu"))
    return folder


PAIRS = {"use_sentence_embedding": True, "use_pooler": True, "use_relative_position": False, "emb_size": 16}


@pytest.mark.parametrize(
    ("outputs", "rung", "changes"),
    [
        ("encoder", None, {}),
        ("encoder", None, {**PAIRS, "intermediate_size": 40, "layer_norm_eps": 1e-12}),
        ("encoder", "both", {}),
        *(("fill_mask", rung, {"out_emb_size": size}) for rung, size in (("contiguous", 10), ("explicit", 0))),
        ("fill_mask", "both", PAIRS),
    ],
)
def test_what_is_read_is_the_model_that_was_exported(
    tmp_path: Path, outputs: str, rung: str | None, changes: dict[str, Any]
) -> None:
    """So its outputs are those of the model, which test_forward.py and test_api.py compare with the executor's."""
    model = random_model(rung, **changes)
    found, text = read_exported(exported(model, outputs, tmp_path / "model"))
    fills = outputs == "fill_mask"
    assert replace(found.config, use_pooler=model.config.use_pooler) == replace(model.config, vocab_size=TOKENS)
    assert text == TextSettings(32 if rung else 64, "vocab.txt", True, "char")
    assert found.vocabulary.tokens == VOCABULARY.tokens
    for name, values in found.parameters.items():
        np.testing.assert_array_equal(values, model.parameters[name], err_msg=name)
    left_out = [name for name in model.parameters if name not in found.parameters]
    # Terms that predict nothing here.
    assert not fills or all(name.startswith(("rtd_", "fine_lm_", "query_embedding", "pooled_fc")) for name in left_out)
    assert (found.lexicon is not None) == (fills and rung != "contiguous")
    assert (found.pretraining is not None) == fills
    if found.pretraining and model.pretraining:
        assert prediction_config(found).objective == prediction_config(model).objective


def test_paddle_inference_gives_the_same_numbers(encoder_folder: Path) -> None:
    ids = np.array([[2, 7, 9, 3], [2, 8, 3, 0]])
    batch = {"input_ids": ids, "lengths": np.array([4, 3])}
    expected = run_exported(encoder_folder, batch)
    is_real = np.array([[1, 1, 1, 1], [1, 1, 1, 0]])[..., np.newaxis]  # what stands in padding has no meaning
    # Integers of another size are converted.
    narrow = run_exported(encoder_folder, {name: value.astype(np.int32) for name, value in batch.items()})
    assert all(np.array_equal(narrow[name], value) for name, value in expected.items())
    code = f"""if True:
        import json, numpy as np
        from paddle.inference import Config, create_predictor
        config = Config({str(encoder_folder / "model.json")!r}, {str(encoder_folder / "model.pdiparams")!r})
        config.disable_gpu()
        predictor = create_predictor(config)
        for name, value in zip(predictor.get_input_names(), ({ids.tolist()}, [4, 3]), strict=True):
            predictor.get_input_handle(name).copy_from_cpu(np.array(value))
        predictor.run()
        print(json.dumps([predictor.get_output_handle(n).copy_to_cpu().tolist() for n in predictor.get_output_names()]))
    """
    done = python("-c", code).ok()
    for found, values in zip(map(np.array, json.loads(done.stdout.splitlines()[-1])), expected.values(), strict=True):
        found = found * is_real if found.ndim == 3 else found
        np.testing.assert_allclose(found, values, atol=1e-5)


def test_pairs_and_truncated_texts_are_encoded_as_in_bert() -> None:
    texts = TextEncoder(VOCABULARY, "char", 8)
    ids, cls, sep = VOCABULARY.ids, VOCABULARY.cls, VOCABULARY.sep

    def check(found: EncodedText, expected: list[int], second: int) -> None:
        assert found.ids.tolist() == expected
        assert found.sentence_ids.tolist() == [0] * (len(expected) - second) + [1] * second

    ba, be, bi = ids["ba"], ids["be"], ids["bi"]
    check(texts.encode(("Ba be",)), [cls, ba, be, sep], 0)
    check(texts.encode(("ba", "be\nbi")), [cls, ba, sep, be, bi, sep], 3)
    check(texts.encode(("ba " * 9,), truncate=True), [cls, *[ba] * 6, sep], 0)
    check(texts.encode(("ba " * 9, "be"), truncate=True), [cls, *[ba] * 4, sep, be, sep], 2)
    check(texts.encode(("ba", "be " * 9), truncate=True), [cls, ba, sep, *[be] * 4, sep], 5)
    check(texts.encode(("ba " * 9, "be " * 9), truncate=True), [cls, *[ba] * 3, sep, be, be, sep], 3)


def test_missing_heads_and_a_missing_parameter_are_refused(tmp_path: Path) -> None:
    model, missing = random_model(None), "encoder_layer_1_ffn_fc_0.w_0"
    less = replace(model, parameters={name: model.parameters[name] for name in model.parameters if name != missing})
    for given, outputs, message in ((model, "fill_mask", "prediction heads"), (less, "encoder", missing)):
        with pytest.raises(InputError, match=message):
            exported(given, outputs, tmp_path / "new")
    assert list(tmp_path.iterdir()) == []


def test_damaged_and_incomplete_folders_are_refused_before_anything_is_loaded(tmp_path: Path) -> None:
    whole = exported(random_model("explicit"), "fill_mask", tmp_path / "whole")
    assert {path.name for path in whole.iterdir()} == {
        *("model.json", "model.pdiparams", "inference.json", "vocab.txt", "vocab.txt.json"),
        *("lexicon.tsv", "lexicon.tsv.json", "checksums.json"),
    }
    names = sorted(path.name for path in whole.iterdir())
    for name in names:
        for damage in ("removed", "truncated"):
            folder = tmp_path / f"{damage}_{name}"
            shutil.copytree(whole, folder)
            if damage == "removed":
                (folder / name).unlink()
            else:
                (folder / name).write_bytes((folder / name).read_bytes()[:-9])
            with pytest.raises(InputError) as error:
                read_exported(folder)
            assert name in str(error.value), damage
    sums, path = json.loads((whole / "checksums.json").read_text()), whole / "checksums.json"
    for wrong in ({}, [], sums | {"../vocab.txt": ""}, sums | {"..": ""}):
        path.write_text(json.dumps(wrong))
        with pytest.raises(InputError, match=str(path)):
            read_exported(whole)


TEXT = {"max_tokens": 9, "lowercase": True, "segmenter": "char", "vocabulary": "vocab.txt"}


@pytest.mark.parametrize(
    "change",
    [
        *({"format_version": 2}, {"text": []}, {"network": []}, {"network": {}}),
        {"network": {"model": {"hidden_size": []}}},
        {"network": {"model": {}, "pretraining": [1]}},
        *({"text": {**TEXT, "max_tokens": most}} for most in ("9", 65)),
        {"text": {key: value for key, value in TEXT.items() if key != "vocabulary"}},
        {"text": {**TEXT, "vocabulary": "../vocab.txt"}},
    ],
    ids=str,
)
def test_an_invalid_description_is_refused(folder: Path, change: dict[str, Any]) -> None:
    describe(folder, text=TEXT)
    assert read_exported(folder)[1].max_tokens == 9
    describe(folder, **change)
    with pytest.raises(InputError, match=str(folder / "inference.json")):
        read_exported(folder)


def test_parameters_and_tokens_that_do_not_fit_are_refused(folder: Path) -> None:
    network = json.loads((folder / "inference.json").read_text())["network"]
    for layers, reason in ((3, "encoder_layer_2.* missing"), (1, "encoder_layer_1.* not expected")):
        describe(folder, network={"model": network["model"] | {"num_hidden_layers": layers}})
        with pytest.raises(InputError, match=rf"model\.pdiparams: {reason}"):
            read_exported(folder)
    describe(folder, network=network)
    numbers = (folder / "model.pdiparams").read_bytes()
    (folder / "model.pdiparams").write_bytes(numbers[:-4] + np.float32(np.nan).tobytes())
    describe(folder)
    with pytest.raises(InputError, match=r"model\.pdiparams: word_embedding holds numbers that are not finite"):
        read_exported(folder)
    (folder / "model.pdiparams").write_bytes(numbers)
    (folder / "vocab.txt").write_text((folder / "vocab.txt").read_text() + "more\n")
    describe(folder)
    with pytest.raises(InputError, match=r"vocab\.txt: 41 tokens"):
        read_exported(folder)
    (folder / "model.json").write_text('{"program": {}}')
    describe(folder)
    with pytest.raises(InputError, match=r"model\.json: not a program of Paddle: 'regions'"):
        read_exported(folder)


def describe(folder: Path, **changes: Any) -> None:
    """Change the description of an exported program, and its checksums."""
    path = folder / "inference.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    (folder / "checksums.json").unlink()
    write_checksums(folder)


def test_texts_are_split_as_those_of_the_exported_model(folder: Path) -> None:
    """The segmenter matters for a SentencePiece vocabulary; and its length and case for all."""
    vocabulary = train_sentencepiece(["上海 is a town", "Shanghai is a city"], 30, False)
    (folder / vocabulary.file_name).write_bytes(vocabulary.content)
    for segmenter, lowercase, tokens in (("jieba", True, 9), ("space", False, 12)):
        text = {"max_tokens": tokens, "lowercase": lowercase, "segmenter": segmenter, "vocabulary": "spm.model"}
        describe(folder, text=text)
        model = Model.load(folder)
        found = model.tokenizer.segmenter, model.tokenizer.vocabulary.lowercase, model.texts.max_tokens
        assert found == (segmenter, lowercase, tokens)
    with pytest.raises(InputError, match=f"^{folder}: "):
        model.save(folder.with_name("saved"))


def test_special_tokens_are_no_answer_and_the_probabilities_stay() -> None:
    units = UnitNames(WordPieceVocabulary(["[PAD]", "a", "[UNK]", "[CLS]", "b", "[SEP]", "[MASK]", "c"]), None)
    probabilities = np.array([0.05, 0.1, 0.5, 0.06, 0.03, 0.07, 0.08, 0.11], np.float32)
    expected = [Guess(text, float(np.float32(value))) for text, value in (("c", 0.11), ("a", 0.1), ("b", 0.03))]
    for limit in range(1, 10):
        assert best_units(units, probabilities, limit) == expected[:limit]
