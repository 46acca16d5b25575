"""Exported programs compute what the executor that trains computes; damaged and incomplete folders are refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ernie_gram.api import Model
from ernie_gram.distributed.world import start_world
from ernie_gram.formats.model import ModelRecord
from ernie_gram.inference.export import export_model
from ernie_gram.inference.forward import build_outputs
from ernie_gram.inference.texts import EncodedText, Guess, TextEncoder, best_units
from reader.corpus.units import UnitNames
from reader.errors import InputError
from reader.system.output_files import kind_of
from reader.tokenization.wordpiece import WordPieceVocabulary
from tests.support.commands import python
from tests.support.exported_models import VOCABULARY, random_model, run_exported, run_with_executor
from tests.support.static_programs import fresh_scope


@pytest.fixture(scope="module")
def encoder_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return exported(random_model(None), "encoder", tmp_path_factory.mktemp("encoder") / "model")


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
def test_a_program_computes_what_the_model_computes(
    tmp_path: Path, outputs: str, rung: str | None, changes: dict[str, Any]
) -> None:
    """Whose numbers test_forward.py and test_api.py compare with those of the layer and of the executor."""
    model = random_model(rung, **changes)
    if rung is None:
        model = replace(model, vocabulary=WordPieceVocabulary(VOCABULARY.tokens, lowercase=False))
    folder = exported(model, outputs, tmp_path / "model")
    assert {path.name for path in folder.iterdir()} == {
        *("model.json", "model.pdiparams", "inference.json", "vocab.txt", "vocab.txt.json", "checksums.json"),
        *(("lexicon.tsv", "lexicon.tsv.json") if model.lexicon and outputs == "fill_mask" else ()),
    }
    assert kind_of(folder) == "exported model"
    description = json.loads((folder / "inference.json").read_text())
    text = {"max_tokens": 32 if rung else 64, "vocabulary": "vocab.txt", "lowercase": bool(rung), "segmenter": "char"}
    assert description["text"] == text
    ids = np.array([[2, 7, 9, 4, 3], [2, 4, 3, 0, 0]])
    batch = {"input_ids": ids, "lengths": np.array([5, 3]), "sentence_ids": (ids == 3).astype(np.int64)}
    batch |= {"slots": np.flatnonzero(ids == 4)}
    found = run_exported(folder, batch)
    assert list(found) == [each["name"] for each in description["fetches"]]
    if rung == "both" and outputs == "fill_mask":  # the samples depend on the kernels
        with fresh_scope():
            expected = run_with_executor(build_outputs(model, list(found), portable=True), model, batch)
    else:
        expected = Model(model).prepare().run(batch, list(found))
    if outputs == "encoder":
        found["hidden"], expected["hidden"] = (each["hidden"][ids > 0] for each in (found, expected))
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, atol=1e-5, err_msg=name)


def test_paddle_inference_gives_the_same_numbers(encoder_folder: Path) -> None:
    ids = np.array([[2, 7, 9, 3], [2, 8, 3, 0]])
    batch = {"input_ids": ids, "lengths": np.array([4, 3])}
    expected = run_exported(encoder_folder, batch)
    is_real = np.array([[1, 1, 1, 1], [1, 1, 1, 0]])[..., np.newaxis]  # what stands in padding has no meaning
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
        found, values = (each * is_real if each.ndim == 3 else each for each in (found, values))
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


def test_special_tokens_are_no_answer_and_the_probabilities_stay() -> None:
    units = UnitNames(WordPieceVocabulary(["[PAD]", "a", "[UNK]", "[CLS]", "b", "[SEP]", "[MASK]", "c"]), None)
    probabilities = np.array([0.05, 0.1, 0.5, 0.06, 0.03, 0.07, 0.08, 0.11], np.float32)
    expected = [Guess(text, float(np.float32(value))) for text, value in (("c", 0.11), ("a", 0.1), ("b", 0.03))]
    for limit in range(1, 10):
        assert best_units(units, probabilities, limit) == expected[:limit]
