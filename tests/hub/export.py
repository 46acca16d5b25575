"""Write what `check.py` checks, from our environment: exports for PaddleNLP, and our outputs and token IDs beside them.

python -m tests.hub.export FOLDER [--texts VOCABULARY FILE [FILE ...]] ...    # files with a text a line

FOLDER/models/NAME/           an export
FOLDER/models/NAME.npz        inputs and our outputs, float32
FOLDER/tokens/NUMBER/         an export with a vocabulary, texts.json, and our token IDs of each text, ids.json
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import unicodedata
from pathlib import Path

import numpy as np

from ernie_gram.api import Model
from ernie_gram.formats.model import ModelRecord
from ernie_gram.formats.paddlenlp import TaskHead, write
from ernie_gram.formats.parameters import encoder_shapes
from ernie_gram.model.config import ModelConfig
from reader.tokenization.basic_tokenizer import fold, split_words
from reader.tokenization.vocabulary import Vocabulary
from reader.tokenization.vocabulary_file import load_vocabulary
from reader.tokenization.wordpiece import count_words, train_wordpiece
from tests.support.model_folders import encoder_output_for, random_arrays
from tests.support.static_programs import Arrays

SMALL = ModelConfig(
    hidden_size=48,
    intermediate_size=80,
    num_hidden_layers=3,
    num_attention_heads=4,
    max_position_embeddings=160,
    use_pooler=True,
    use_sentence_embedding=True,
    use_relative_position=False,
)
SETTINGS = {
    "segments": SMALL,
    "no_segments": dataclasses.replace(SMALL, use_sentence_embedding=False),
    "relu": dataclasses.replace(SMALL, hidden_act="relu", intermediate_size=None),
    "relative": dataclasses.replace(SMALL, use_relative_position=True, use_sentence_embedding=False),
    "relative_and_segments": dataclasses.replace(SMALL, use_relative_position=True),
    "no_pooler": dataclasses.replace(SMALL, use_pooler=False),
}
CLASSES = {"SequenceClassification": 3, "TokenClassification": 5, "QuestionAnswering": 2}
PAIRS = (
    "a short text",
    ("the first text of a pair, which is longer", "and the second"),
    ("中文和 English mixed", "“quotes” — and (brackets)"),
    "long text " * 60,
)

# One text for each rule that could differ, for a vocabulary of this file's words.
DIFFICULT = (
    "plain words, in lower case",
    "Capitals ÉCOLE naïve coöperate Ångström",
    "punctuation: isn't it? (yes!) a-b-c ... “quotes” — dash",
    "中文和English混合，标点。",
    "control\x00 characters\x07 soft\u00adhyphen zero\u200bwidth no\u00a0break line\u2028end",
    "price 5€ 30°C a→b x≠y c++ $3 ^2 `code` ~1 |",
    "emoji😀inside ©2021 ™ ½ ² º Ø ŋ 〇",
    "a [MASK] and [SEP] or [UNK]",
    "日本語のテキスト 한국어 텍스트 हिन्दी ไทย العربية",
    "w" * 101 + " " + "w" * 100,
    "  spaces  \t tabs \r\n and lines ",
    "",
)
# Characters beside those of category S that PaddleNLP takes for symbols.
MORE_SYMBOLS = "\u00ad\u00b2\u00ba\u3007\u00b5\u00d8\u014b\u01b1"


def token_ids(text: str, vocabulary: Vocabulary) -> list[int]:
    """Return [CLS], our token IDs of a text, [SEP]."""
    words = split_words(text, vocabulary.lowercase)
    return [vocabulary.cls, *(token for word in words for token in vocabulary.encode(word)), vocabulary.sep]


def with_separate_symbols(text: str, lowercase: bool) -> str:
    """Return a text in which the characters that PaddleNLP takes for symbols stand between spaces."""
    folded = fold(text) if lowercase else text
    return "".join(f" {c} " if unicodedata.category(c)[0] == "S" or c in MORE_SYMBOLS else c for c in folded)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.hub.export", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--texts", nargs="+", action="append", type=Path, default=[])
    arguments = parser.parse_args()
    vocabulary = train_wordpiece(count_words(DIFFICULT * 2, True), 400, lowercase=True)
    for name, config in SETTINGS.items():
        export_model(arguments.folder / "models" / name, config, vocabulary)
    export_tokens(arguments.folder / "tokens" / "0", vocabulary, list(DIFFICULT))
    for number, (path, *files) in enumerate(arguments.texts, start=1):
        texts = list(dict.fromkeys(text for file in files for text in file.read_text("utf-8").splitlines()))
        export_tokens(arguments.folder / "tokens" / str(number), load_vocabulary(path), texts)


def export_model(path: Path, config: ModelConfig, vocabulary: Vocabulary) -> None:
    """Write a random encoder, alone and, if it has a pooler, with each kind of head; and our outputs."""
    config = dataclasses.replace(config, vocab_size=len(vocabulary))
    model = ModelRecord(path, "test", config, random_arrays(encoder_shapes(config)), vocabulary)
    ids, lengths, segments = Model(model).batch(PAIRS, truncate=True).values()
    inputs = {"input_ids": ids, "lengths": lengths, "token_type_ids": segments}
    hidden_BLH, *pooled = encoder_output_for(config, model.parameters, *inputs.values())
    outputs = dict(zip(("sequence_output", "pooled_output"), (hidden_BLH, *pooled), strict=False))
    save(path, model, None, inputs | outputs)
    if not pooled:
        return
    random = np.random.default_rng(5)
    for kind, classes in CLASSES.items():
        weight = (0.2 * random.standard_normal((config.hidden_size, classes))).astype(np.float32)
        bias = random.standard_normal(classes).astype(np.float32)
        labels = () if kind == "QuestionAnswering" else tuple(f"class {i}" for i in range(classes))
        head = TaskHead(f"ErnieGramFor{kind}", weight, bias, labels)
        logits = (pooled[0] if kind == "SequenceClassification" else hidden_BLH) @ weight + bias
        save(path.with_name(f"{path.name}_{kind}"), model, head, inputs | {"logits": logits})


def save(path: Path, model: ModelRecord, head: TaskHead | None, arrays: Arrays) -> None:
    path.mkdir(parents=True)
    write(model, path, path.name, head)
    np.savez(path.with_suffix(".npz"), **arrays)


def export_tokens(path: Path, vocabulary: Vocabulary, texts: list[str]) -> None:
    """Write a model with a vocabulary, and for each text our token IDs of it, as it is and with separate symbols."""
    config = dataclasses.replace(SMALL, num_hidden_layers=1, vocab_size=len(vocabulary))
    path.mkdir(parents=True)
    write(ModelRecord(path, "test", config, random_arrays(encoder_shapes(config)), vocabulary), path, "tokens")
    separate = [token_ids(with_separate_symbols(text, vocabulary.lowercase), vocabulary) for text in texts]
    ids = [token_ids(text, vocabulary) for text in texts]
    (path / "texts.json").write_text(json.dumps({"texts": texts, "ids": ids, "separate": separate}))


if __name__ == "__main__":
    main()
