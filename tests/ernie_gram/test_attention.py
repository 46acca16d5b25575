"""The command `attention`: what it prints and writes is the attention of the model, and its errors are one line."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from matplotlib.patches import Rectangle

from ernie_gram.api import Model
from ernie_gram.attention import main
from ernie_gram.formats.registry import write_model
from ernie_gram.inference.attention_figure import attention_figure
from ernie_gram.inference.ngram_attention import TokenSpan, inside_attention
from tests.support.commands import Done, assert_one_line_error, call
from tests.support.exported_models import made_up_lexicon, random_model
from tests.support.small_model import TOKENS

# As in a process of its own.
pytestmark = pytest.mark.usefixtures("dynamic_mode")

TEXT = "di ba be  bi du bo Bu du ga de do"
NGRAMS = [(2, 4), (6, 8)]  # "ba be" and "bo Bu" after [CLS] and "di"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model folder with a lexicon beside it. Tests must not change them."""
    made = tmp_path_factory.mktemp("attention")
    model = random_model(None, use_relative_position=True, vocab_size=TOKENS)
    write_model(model, made / "model", "ernie_gram", True)
    made_up_lexicon().save(made / "lexicon.tsv")
    return made


def attention(folder: Path, *arguments: object) -> Done:
    return call(main, str(folder / "model"), *map(str, arguments))


def test_the_files_have_the_attention_of_the_chosen_layer(folder: Path, tmp_path: Path) -> None:
    model = Model.load(folder / "model")
    expected = model.attention(TEXT)
    files = ("--json", tmp_path / "a.json", "--plot", tmp_path / "a.png", "--overwrite")
    for layer, index in ((-1, 1), (0, 0)):
        done = attention(folder, "--text", TEXT, "--entities", "ba be", "BO BU", "--layer", layer, *files)
        assert (done.returncode, done.stderr) == (0, "")
        content = json.loads((tmp_path / "a.json").read_text("utf-8"))
        assert (content["model"], content["text"]) == (str(model.folder), TEXT)
        assert (content["layer"], content["layers"], content["tokens"]) == (index, 2, expected.tokens)
        assert [tuple(span) if span else None for span in content["offsets"]] == expected.offsets
        names = ("ba be", "bo Bu")
        spans = [{"text": text, "start": a, "end": b} for text, (a, b) in zip(names, NGRAMS, strict=True)]
        assert content["ngrams"] == spans
        np.testing.assert_allclose(content["weights"], expected.weights[index], atol=1e-6)
        found = inside_attention(expected.weights[index], [TokenSpan(*span) for span in NGRAMS])
        numbers = content["inside_attention"]
        assert (numbers["pairs"], numbers["left_out"]) == (4, 0)
        np.testing.assert_allclose(numbers["inside"], found.inside, atol=1e-6)
        np.testing.assert_allclose(numbers["expected"], found.expected, atol=1e-6)
        first, _, mean, *heads = done.stdout.splitlines()[:9]
        assert first == "13 tokens; n-grams: ba be, bo Bu"
        inside, baseline = found.inside.mean(), found.expected.mean()
        assert mean.split() == [
            *["mean", "of", "heads"],
            f"{inside:.4f}",
            f"{baseline:.4f}",
            f"{inside / baseline:.2f}",
        ]
        assert [line.split()[2] for line in heads] == [f"{value:.4f}" for value in found.inside]
        assert "(4 pairs of tokens)" in done.stdout
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_the_ngrams_of_a_lexicon_are_marked(folder: Path) -> None:
    done = attention(folder, "--text", "ba be bi bo bu du du di", "--lexicon", folder / "lexicon.tsv")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("10 tokens; n-grams: ba be, bi bo\n")


def test_the_table_over_the_lines_of_a_file_has_all_their_pairs(folder: Path, tmp_path: Path) -> None:
    lines = ["ba be di do di du", "du bi bo do ga gi do", "ga do " * 60]
    texts, path = tmp_path / "texts", tmp_path / "a.json"
    texts.write_text("\n".join(lines) + "\n\n")
    done = attention(folder, "--input", texts, "--lexicon", folder / "lexicon.tsv", "--json", path)
    assert (done.returncode, done.stderr) == (0, "")
    model = Model.load(folder / "model")
    spans = [[TokenSpan(1, 3)], [TokenSpan(2, 4)], []]
    found = [
        inside_attention(model.attention(line, truncate=True).weights[-1], each)
        for line, each in zip(lines, spans, strict=True)
    ]
    content = json.loads(path.read_text())
    assert (content["texts"], content["layer"], content["layers"]) == (3, 1, 2)
    assert content["inside_attention"]["pairs"] == 4
    mean = (found[0].inside + found[1].inside) / 2
    np.testing.assert_allclose(content["inside_attention"]["inside"], mean, atol=1e-6)
    assert done.stdout.startswith("3 texts\n")
    assert f"mean of heads   {mean.mean():8.4f}" in done.stdout
    texts.write_text("ba be\n\nbe bi\n")
    done = attention(folder, "--input", texts, "--lexicon", folder / "lexicon.tsv")
    assert done.stdout.startswith("2 texts\n")
    for options, message in (
        ([], "--lexicon: is needed with --input"),
        (["--lexicon", folder / "lexicon.tsv", "--plot", "a.png"], "--plot: is for --text; leave it out"),
    ):
        assert_one_line_error(attention(folder, "--input", texts, *options), message)
    texts.write_text("\n")
    done = attention(folder, "--input", texts, "--lexicon", folder / "lexicon.tsv")
    assert_one_line_error(done, f"{texts}: has no text")


def test_without_ngrams_no_attention_is_compared(folder: Path, tmp_path: Path) -> None:
    done = attention(folder, "--text", "ba be", "--json", tmp_path / "a.json")
    assert done.stderr == "note: no n-grams to compare; mark some with --entities or --lexicon\n"
    assert done.stdout.startswith("4 tokens; n-grams: none\nno n-gram of several tokens whose distances")
    assert json.loads((tmp_path / "a.json").read_text())["inside_attention"] == {"pairs": 0, "left_out": 0}


def test_mistakes_are_one_line(folder: Path, tmp_path: Path) -> None:
    other = made_up_lexicon()
    lexicon, vocabulary = tmp_path / "lexicon.tsv", folder / "model" / "vocab.txt"
    replace(other, info=replace(other.info, vocabulary="other")).save(lexicon)
    for arguments, message in (
        (["--text", ""], "--text: empty text"),
        (["--text", "\udcff"], "--text: is not UTF-8"),
        (["--text", "ba " * 63], "--text: 65 tokens, but the model was trained on at most 64"),
        (["--text", "ba be", "--entities", "be ba"], "--entities: 'be ba' does not occur as whole words of the text"),
        (["--text", "ba be", "--layer", "2"], "--layer: 2 is not between -2 and 1: the model has 2 layers"),
        (
            ["--text", "ba be", "--lexicon", str(tmp_path / "lexicon.tsv")],
            "--lexicon: the lexicon was made with another",
        ),
        (["--text", "ba be", "--lexicon", "nowhere.tsv"], "--lexicon: nowhere.tsv: no such lexicon"),
        (["--text", "ba", "--plot", str(tmp_path / "a.gif")], f"{tmp_path / 'a.gif'}: the name of a plot must end in"),
        (["--text", "ba", "--plot", "a.png", "--json", "a.png"], "--json: must not be the file of --plot"),
        (
            ["--text", "ba", "--json", str(vocabulary)],
            f"--json: {vocabulary} belongs to the model in",
        ),
    ):
        assert_one_line_error(attention(folder, *arguments), message)


@pytest.mark.parametrize(("heads", "tokens"), [(1, 5), (6, 12), (12, 43)])
def test_labels_and_boxes_of_a_figure_are_where_they_belong(heads: int, tokens: int) -> None:
    names = ["[CLS]", *(f"token{i}" if i % 3 else "$" for i in range(tokens - 2)), "[SEP]"]
    names[2] = "averylongtokenofmanyletters"
    weights = np.random.default_rng(1).dirichlet(np.ones(tokens), (heads, tokens))
    figure = attention_figure(weights, names, [TokenSpan(1, 3)], "a title")
    figure.draw_without_rendering()
    panels = [axes for axes in figure.axes if axes.images and axes.get_title().startswith("head")]
    [large] = [axes for axes in figure.axes if axes.images and axes.get_xticks().size == tokens]
    assert [axes.get_title() for axes in panels] == [f"head {head}" for head in range(heads)]
    for axes, values in zip((large, *panels), (weights.mean(0), *weights), strict=True):
        np.testing.assert_array_equal(axes.images[0].get_array(), values)
        [box] = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
        assert (box.get_xy(), box.get_width(), box.get_height()) == ((0.5, 0.5), 2, 2)
    for labels in (large.get_xticklabels(), large.get_yticklabels()):
        assert [label.get_text() for label in labels] == [*names[:2], "averylongtokeno…", *names[3:]]
        boxes = [label.get_window_extent() for label in labels]
        assert not any(one.overlaps(other) for one, other in pairwise(boxes))
        page = figure.bbox
        assert all(page.x0 <= box.x0 and box.x1 <= page.x1 and page.y0 <= box.y0 and box.y1 <= page.y1 for box in boxes)
