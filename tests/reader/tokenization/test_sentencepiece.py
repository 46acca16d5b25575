"""SentencePiece vocabularies: training one, building a corpus, and predicting with a model trained on its pieces."""

from __future__ import annotations

import io
import json
import shutil
import unicodedata
from itertools import pairwise
from pathlib import Path

import pytest
from sentencepiece import SentencePieceProcessor, SentencePieceTrainer

from ernie_gram import fill_mask
from reader.corpus.memmap import Corpus
from reader.corpus.units import UnitCutter, UnitNames
from reader.errors import InputError
from reader.lexicon.lexicon_file import Lexicon
from reader.tokenization.basic_tokenizer import segmenter, split_words
from reader.tokenization.sentencepiece import SentencePieceVocabulary, train_sentencepiece
from reader.tokenization.vocabulary import SPECIAL_TOKENS
from reader.tokenization.vocabulary_file import kept_vocabulary, load_vocabulary
from tests.reader.corpus.test_builder import tokens_of
from tests.support.commands import ERNIE_GRAM, build, python
from tests.support.runs import TINY, pretrain_with

HAN = "中国人民大学在北京。我们的研究人员在中国人民大学工作！北京是中国的首都，人工智能研究很重要。\n"


@pytest.fixture(scope="module")
def pieces(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with train.txt (English and Chinese), spm.model, lexicon.tsv and corpus/."""
    folder = tmp_path_factory.mktemp("pieces")
    train = folder / "train.txt"
    train.write_text((built / "train.txt").read_text(encoding="utf-8") + "\n\n" + HAN * 60, encoding="utf-8")
    vocab, lexicon = str(folder / "spm.model"), str(folder / "lexicon.tsv")
    made = python(
        *(*ERNIE_GRAM, "vocab", "--size", "1000"),
        *("--input", str(train), "--output", vocab),
    ).ok()
    assert "LOG(" not in made.stderr
    common = ["--input", str(train), "--vocab", vocab]
    build("lexicon", *common, "--top", "1:10,2:400,3:200", "--output", lexicon)
    build("corpus", *common, "--lexicon", lexicon, "--output", str(folder / "corpus"))
    return folder


@pytest.fixture(scope="module")
def vocabulary(pieces: Path) -> SentencePieceVocabulary:
    return load_vocabulary(pieces / "spm.model")


def lines_of(folder: Path) -> list[str]:
    return (folder / "train.txt").read_text(encoding="utf-8").split("\n")


def trained(**settings: object) -> bytes:
    """A model of sentencepiece as others may have made it."""
    model = io.BytesIO()
    text = iter(["some words of text", "and some more words"] * 3)
    SentencePieceTrainer.train(
        **{"sentence_iterator": text, "model_writer": model, "vocab_size": 30, "hard_vocab_limit": False}  # type: ignore[arg-type]
        | {"minloglevel": 2}
        | settings
    )
    return model.getvalue()


OURS = {"pad_id": 0, "unk_id": 1, "bos_id": 2, "eos_id": 3, "control_symbols": ["[MASK]"]}
OURS |= {"pad_piece": "[PAD]", "unk_piece": "[UNK]", "bos_piece": "[CLS]", "eos_piece": "[SEP]"}


def test_training_is_reproducible(pieces: Path, vocabulary: SentencePieceVocabulary) -> None:
    lines = lines_of(pieces)
    first, second = (train_sentencepiece(lines, 1000, True, "jieba") for _ in range(2))
    assert first.content == second.content == vocabulary.content == (pieces / "spm.model").read_bytes()
    assert len(vocabulary) == 1000
    assert vocabulary.tokens[:5] == list(SPECIAL_TOKENS)
    assert (vocabulary.pad, vocabulary.unk, vocabulary.cls, vocabulary.sep, vocabulary.mask) == (0, 1, 2, 3, 4)
    assert {"▁the", "▁中国"} <= set(vocabulary.tokens)
    assert len(train_sentencepiece(["a few words"], 800, True)) < 40
    # The trainer does not ignore long lines, and it finishes in reasonable time.
    assert "▁words" in train_sentencepiece(["many words " * 50000 + "a" * 50000], 40, True).tokens
    with pytest.raises(InputError, match=r"--size 6: .* is smaller than required_chars. 6 vs \d+"):
        train_sentencepiece(lines, 6, True)
    with pytest.raises(InputError, match="contains no words"):
        train_sentencepiece(["\x00"], 100, True)


def test_documents_contain_the_pieces_of_their_words_and_the_lexicon_no_word_that_is_one(
    pieces: Path, vocabulary: SentencePieceVocabulary
) -> None:
    reference, cut = SentencePieceProcessor(model_file=str(pieces / "spm.model")), segmenter("jieba")
    documents: list[list[int]] = [[]]
    for line in lines_of(pieces):
        if not line.strip():
            documents.append([])
        for word in split_words(line, True, cut):
            documents[-1] += reference.encode(word)
    expected = [tokens for tokens in documents if tokens]
    corpus = Corpus(pieces / "corpus")
    assert [tokens_of(corpus, corpus.units[a:b]) for a, b in pairwise(corpus.documents)] == expected
    assert corpus.info.tokens == sum(map(len, expected))
    words = [tuple(text.split(" ")) for text in corpus.lexicon.ngrams.texts]
    assert any(len(ngram) == 1 for ngram in words)
    assert len(vocabulary.encode("中国")) == 1
    assert ("中国",) not in words
    for index, ngram in enumerate(words):
        unit = corpus.info.num_tokens + index
        tokens = tokens_of(corpus, [unit])  # type: ignore[arg-type]
        assert tokens == [token for word in ngram for token in vocabulary.encode(word)]
        assert 1 < len(tokens) == corpus.unit_tokens[unit] <= 8
        assert corpus.names.text(unit) == vocabulary.text(tokens) == " ".join(ngram)


def test_readable_text_consists_of_the_words_which_have_at_least_one_piece(
    pieces: Path, vocabulary: SentencePieceVocabulary
) -> None:
    cut = segmenter("jieba")
    texts = [" ".join(split_words(line, True, cut)) for line in lines_of(pieces)]
    for text in (unicodedata.normalize("NFKC", text) for text in texts):
        assert vocabulary.text(token for word in text.split() for token in vocabulary.encode(word)) == text
    ids = vocabulary.ids
    assert vocabulary.text(["[MASK 1]", ids["ing"], "[a b]", ids["▁the"], ids["s"]]) == "[MASK 1]ing [a b] thes"
    assert vocabulary.text([ids["ing"], ids["▁"], vocabulary.unk, ids["▁"], "[MASK 1]"]) == "##ing [UNK] [MASK 1]"
    names = Corpus(pieces / "corpus").names
    assert [names.text(ids[token]) for token in ("▁the", "ing", "▁", "[UNK]")] == ["the", "##ing", "▁", "[UNK]"]
    cutter = UnitCutter(vocabulary, Lexicon.load(pieces / "lexicon.tsv"))
    units, starts, _ = cutter.cut("Zyx! Isn't THE language reference\n中国人民大学\n".encode())
    names = UnitNames(vocabulary, cutter.lexicon)
    shown = [
        vocabulary.text(names.text(unit) if unit >= cutter.num_tokens else unit for unit in units[first:last].tolist())
        for first, last in pairwise(starts.tolist())
    ]
    assert shown == ["zyx ! isn ' t the language reference", " ".join(cut("中国人民大学"))]
    # SentencePiece treats its own mark as white space, and drops it.
    assert vocabulary.encode("▁") == [vocabulary.unk]
    assert vocabulary.encode("☃")[-1] == vocabulary.unk
    # Text that looks like a special token does not become one.
    assert not {*range(5)} & {token for word in split_words("[MASK]", True) for token in vocabulary.encode(word)}


def damaged(model: bytes) -> bytes:
    position = model.index("▁the".encode())
    return model[:position] + b"\xff" + model[position + 1 :]


INVALID_MODELS = {
    "empty": (lambda model: b"", "damaged, or not a SentencePiece model"),
    "text": (lambda model: b"[PAD]\n[UNK]\n", "damaged, or not a SentencePiece model"),
    "cut short": (lambda model: model[:-9], "damaged, or not a SentencePiece model"),
    "not UTF-8": (damaged, "damaged, or not a SentencePiece model"),
    "no specials": (lambda model: trained(), r"special tokens missing: \[PAD\], \[UNK\], \[CLS\], \[SEP\], \[MASK\];"),
    "no mask": (lambda model: trained(**OURS | {"control_symbols": []}), r"special tokens missing: \[MASK\];"),
    "other unknown": (
        lambda model: trained(**OURS | {"unk_piece": "<unk>", "control_symbols": ["[UNK]", "[MASK]"]}),
        r"the token for unknown characters is <unk>; it must be \[UNK\]",
    ),
    "no prefix": (lambda model: trained(**OURS, add_dummy_prefix=False), "do not mark the beginning of a word"),
    "suffixes": (lambda model: trained(**OURS, treat_whitespace_as_suffix=True), "do not mark the beginning of a word"),
}


@pytest.mark.parametrize("case", INVALID_MODELS)
def test_invalid_models_are_rejected(vocabulary: SentencePieceVocabulary, tmp_path: Path, case: str) -> None:
    change, message = INVALID_MODELS[case]
    (tmp_path / "v.model").write_bytes(change(vocabulary.content))
    with pytest.raises(InputError, match=rf"v\.model: .*{message}"):
        load_vocabulary(tmp_path / "v.model")


@pytest.mark.parametrize("settings", [OURS, OURS | {"model_type": "bpe"}, OURS | {"byte_fallback": True}])
def test_models_from_other_trainings_are_accepted(settings: dict[str, object]) -> None:
    settings = settings | {"vocab_size": 300}
    model = SentencePieceVocabulary(trained(**settings))
    assert model.text(token for word in ("some", "words") for token in model.encode(word)) == "some words"


def test_vocabularies_differ_in_fingerprints(built: Path, pieces: Path, vocabulary: SentencePieceVocabulary) -> None:
    found = [
        load_vocabulary(path, lowercase)
        for path in (built / "vocab.txt", pieces / "spm.model")
        for lowercase in (True, False)
    ]
    found.append(SentencePieceVocabulary(trained(**OURS)))
    assert len({each.fingerprint for each in found}) == 5
    assert load_vocabulary(pieces / "spm.model").fingerprint == vocabulary.fingerprint


def test_a_model_can_be_trained_and_used_to_fill_masks(built: Path, pieces: Path, tmp_path: Path) -> None:
    from tests.support.static_programs import call_in_scope

    run = tmp_path / "run"
    run.mkdir()
    # A file that a failed attempt with another corpus left behind.
    shutil.copyfile(built / "vocab.txt", run / "vocab.txt")
    paths = [f"--paths.corpus={pieces / 'corpus'}", f"--paths.output={run}"]
    done = pretrain_with(*TINY, *paths, "--trainer.max_steps=5", "--trainer.save_every=5").ok()
    assert (run / "spm.model").read_bytes() == (pieces / "spm.model").read_bytes()
    done = call_in_scope(fill_mask.main, run, "--json", "--top", "4000", "The [MASK] 中国人民[MASK]。").ok()
    corpus = Corpus(pieces / "corpus")
    for mask in json.loads(done.stdout)["masks"]:
        units = [guess["unit"] for guess in mask]
        answers = (unit for unit in range(corpus.num_units) if unit not in corpus.vocabulary.special_ids)
        assert sorted(units) == sorted(map(corpus.names.text, answers))
        assert 0.99 < sum(guess["probability"] for guess in mask) < 1
    (run / "spm.model").unlink()
    (run / "vocab.txt").unlink()
    with pytest.raises(InputError, match="run: contains no "):
        kept_vocabulary(run, "", "of x")
