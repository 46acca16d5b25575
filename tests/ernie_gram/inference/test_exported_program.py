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
from ernie_gram.inference.description import load_description
from ernie_gram.inference.export import build_encoder
from ernie_gram.inference.exported_program import export_model
from ernie_gram.inference.texts import EncodedText, TextEncoder
from ernie_gram.inference.units import Guess, best_units
from ernie_gram.pretraining.network import build_prediction
from ernie_gram.pretraining.sizes import CorpusSizes
from ernie_gram.run.checkpoint import write_checksums
from reader.corpus.units import UnitNames
from reader.errors import InputError
from reader.tokenization.sentencepiece import train_sentencepiece
from reader.tokenization.wordpiece import WordPieceVocabulary
from tests.support.commands import python
from tests.support.exported_models import VOCABULARY, random_model, run_exported, run_with_executor
from tests.support.small_model import NGRAMS, TOKENS, config_of, random_batch
from tests.support.static_programs import fresh_scope


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


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {
            "use_sentence_embedding": True,
            "use_pooler": True,
            "use_relative_position": False,
            "emb_size": 16,
            "intermediate_size": 40,
            "layer_norm_eps": 1e-12,
        },
    ],
)
def test_encoder_outputs_equal_those_of_the_executor_on_padded_batches(tmp_path: Path, changes: dict[str, Any]) -> None:
    model, random = random_model(None, **changes), np.random.default_rng(1)
    folder = exported(model, "encoder", tmp_path / "model")
    for lengths in ([5], [9, 3, 20], [64, 2]):
        shape = (len(lengths), max(lengths))
        batch = {
            "input_ids": random.integers(5, TOKENS, shape) * (np.arange(shape[1]) < np.array(lengths)[:, np.newaxis]),
            "lengths": np.array(lengths),
            "sentence_ids": random.integers(0, 2, shape),
        }
        found = run_exported(folder, batch)
        with fresh_scope():
            expected = run_with_executor(build_encoder(model.config, TOKENS, portable=True), model, batch)
        assert list(found) == list(expected)
        assert ("pooled" in found) == model.config.use_pooler
        assert found["hidden"].shape == (*shape, 24)
        expected["hidden"] *= (np.arange(shape[1]) < np.array(lengths)[:, np.newaxis])[..., np.newaxis]
        for name, values in expected.items():
            assert found[name].dtype == np.float32
            np.testing.assert_allclose(found[name], values, atol=1e-6, err_msg=name)
        # Independent of the program: vectors of the slots' outputs. The same row without padding has the same vector.
        for row, length in enumerate(lengths):
            np.testing.assert_allclose(found["mean"][row], found["hidden"][row, :length].mean(0), atol=1e-5)
            np.testing.assert_array_equal(found["cls"][row], found["hidden"][row, 0])
            if "pooled" in found:
                weight, bias = model.parameters["pooled_fc.w_0"], model.parameters["pooled_fc.b_0"]
                np.testing.assert_allclose(found["pooled"][row], np.tanh(found["cls"][row] @ weight + bias), atol=1e-5)
            alone = {name: values[row : row + 1, :length] for name, values in batch.items() if name != "lengths"}
            one = run_exported(folder, alone | {"lengths": np.array([length])}, ["mean"])
            assert list(one) == ["mean"]
            np.testing.assert_allclose(one["mean"][0], found["mean"][row], atol=1e-5)


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


@pytest.mark.parametrize(("rung", "tied"), [("contiguous", False), ("explicit", True), ("both", False)])
def test_probabilities_equal_those_of_the_executor_samples_of_a_generator_included(
    tmp_path: Path, rung: str, tied: bool
) -> None:
    model = random_model(rung, out_emb_size=0 if tied else 10)
    config = config_of(rung, model.config)
    folder = exported(model, "fill_mask", tmp_path / "model")
    sizes = CorpusSizes(TOKENS, NGRAMS if rung != "contiguous" else 0)
    assert load_description(folder).task == {"has_generator": rung == "both", "has_ngrams": rung != "contiguous"}
    seen = []
    with fresh_scope():
        program = build_prediction(config, sizes)
        for seed in range(3):
            batch = random_batch(rung, seed)
            found = run_exported(folder, batch, seed=seed)["probabilities"]
            expected = run_with_executor(program, model, batch, seed)["probabilities"]
            np.testing.assert_allclose(found, expected, atol=1e-6)
            assert found.shape == (9, TOKENS + sizes.ngrams)
            seen.append(run_exported(folder, random_batch(rung), seed=seed)["probabilities"])
    # Without a generator the seed has no effect; with one, other seeds give other probabilities.
    assert np.array_equal(seen[0], seen[1]) == (rung != "both")


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
                load_description(folder)
            assert name in str(error.value), damage
    for folder in (tmp_path / "nowhere", tmp_path):
        with pytest.raises(InputError, match=f"^{folder}: "):
            load_description(folder)
    sums, path = json.loads((whole / "checksums.json").read_text()), whole / "checksums.json"
    for wrong in ({}, [], sums | {"../vocab.txt": ""}, sums | {"..": ""}):
        path.write_text(json.dumps(wrong))
        with pytest.raises(InputError, match=str(path)):
            load_description(whole)


TEXT = {"max_tokens": 9, "lowercase": True, "segmenter": "char", "vocabulary": "vocab.txt"}


@pytest.mark.parametrize(
    "change",
    [
        *({"format_version": 2}, {"more": None}, {"feeds": [{"name": "input_ids"}]}, {"task": []}, {"network": {}}),
        {"text": {**TEXT, "max_tokens": "9"}},
        {"text": {key: value for key, value in TEXT.items() if key != "vocabulary"}},
        {"text": {**TEXT, "vocabulary": "../vocab.txt"}},
    ],
    ids=str,
)
def test_an_invalid_description_is_refused(folder: Path, change: dict[str, Any]) -> None:
    describe(folder, text=TEXT)
    assert load_description(folder).text.max_tokens == 9
    describe(folder, **change)
    with pytest.raises(InputError, match=str(folder / "inference.json")):
        load_description(folder)


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


def test_special_tokens_are_no_answer_and_the_probabilities_stay() -> None:
    units = UnitNames(WordPieceVocabulary(["[PAD]", "a", "[UNK]", "[CLS]", "b", "[SEP]", "[MASK]", "c"]), None)
    probabilities = np.array([0.05, 0.1, 0.5, 0.06, 0.03, 0.07, 0.08, 0.11], np.float32)
    expected = [Guess(text, float(np.float32(value))) for text, value in (("c", 0.11), ("a", 0.1), ("b", 0.03))]
    for limit in range(1, 10):
        assert best_units(units, probabilities, limit) == expected[:limit]
