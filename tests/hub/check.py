"""Check exports with the real PaddleNLP: equal outputs within 1e-5, and the token IDs that differ.

    python -I check.py FOLDER

FOLDER is written by export.py, in our environment; this script imports nothing of ours. It writes models of
PaddleNLP's own into FOLDER/theirs, for read_back.py. Exits with status 1 if an output differs, or if a token ID differs
for no known reason.
"""

import importlib.util
import json
import os
import re
import sys
import warnings
from collections import Counter
from pathlib import Path

import numpy as np

warnings.filterwarnings("ignore")
import paddle  # noqa: E402
from paddlenlp import transformers  # noqa: E402
from paddlenlp.transformers import AutoModel, AutoTokenizer  # noqa: E402
from paddlenlp.utils.log import logger  # noqa: E402

TOLERANCE = 1e-5
EXAMPLE = "exact_relative_position.py"
SPECIAL = re.compile(r"\[(PAD|UNK|CLS|SEP|MASK)\]")
EXAMPLES_SHOWN = 3


def largest_difference(folder):
    """Return the largest difference between PaddleNLP's outputs and ours over all slots that are no padding."""
    stored = np.load(folder.with_suffix(".npz"))
    architecture = json.loads((folder / "config.json").read_text())["architectures"][0]
    is_head = architecture != "ErnieGramModel"
    model = (getattr(transformers, architecture) if is_head else AutoModel).from_pretrained(str(folder))
    assert type(model).__name__ == architecture, type(model)
    model.eval()
    ids, segments = (paddle.to_tensor(stored[name]) for name in ("input_ids", "token_type_ids"))
    is_token = np.arange(ids.shape[1]) < stored["lengths"][:, np.newaxis]
    outputs = model(ids, segments, attention_mask=mask_of(folder, model, is_token))
    names = ["logits"] if is_head else ["sequence_output", "pooled_output"]
    if architecture.endswith("QuestionAnswering"):
        outputs = paddle.stack(list(outputs), axis=-1)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    differences = []
    for name, output in zip(names, outputs, strict=True):
        if name not in stored:
            continue  # of a pooler that PaddleNLP has drawn at random
        ours, theirs = stored[name], output.numpy()
        assert ours.shape == theirs.shape, (ours.shape, theirs.shape)
        if ours.ndim == 3:
            ours, theirs = ours[is_token], theirs[is_token]
        differences.append(np.abs(ours - theirs).max())
    return float(max(differences))


def mask_of(folder, model, is_token):
    """Return the mask of the example in the folder, if there is one, or else None."""
    if not (folder / EXAMPLE).is_file():
        return None
    spec = importlib.util.spec_from_file_location("example", folder / EXAMPLE)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    table = getattr(model, "ernie_gram", model).embeddings.rel_pos_embeddings.weight
    return paddle.to_tensor(example.attention_mask(table.numpy(), is_token))


def check_models(folder):
    """Print the largest difference of every export; return whether all are within the tolerance."""
    good = True
    for path in sorted(path for path in folder.iterdir() if path.is_dir()):
        difference = largest_difference(path)
        print(f"{path.name:42} {difference:.1e}", flush=True)
        good &= difference <= TOLERANCE
        check_bfloat16(path)
    return good


def check_bfloat16(folder):
    """Load an export in bfloat16: the encoder must have the parameters of the export, rounded."""
    architecture = json.loads((folder / "config.json").read_text())["architectures"][0]
    load = getattr(transformers, architecture).from_pretrained
    exact, rounded = (load(str(folder), dtype=dtype).state_dict() for dtype in ("float32", "bfloat16"))
    for name in exact.keys() - {"pooler.dense.weight", "pooler.dense.bias"}:  # which may be drawn at random
        expected = exact[name].astype("bfloat16").astype("float32").numpy()
        assert rounded[name].dtype == paddle.bfloat16, name
        assert np.array_equal(rounded[name].astype("float32").numpy(), expected), name


def check_card(folder):
    """Run the example in the card of an export, in its folder, as a reader of the card would."""
    code = re.search(r"```python\n(.*?)```", (folder / "README.md").read_text(), re.DOTALL).group(1)
    before = Path.cwd()
    os.chdir(folder)
    sys.path.insert(0, "")
    found = {}
    exec(compile(code, str(folder / "README.md"), "exec"), found)
    sys.path.remove("")
    sys.modules.pop(EXAMPLE[:-3], None)
    os.chdir(before)
    outputs = [found[name] for name in ("sequence_output", "logits", "start_logits") if name in found]
    assert len(outputs) == 1, sorted(found)
    assert len(outputs[0]) == len(found["inputs"]["input_ids"]), outputs[0].shape
    assert found["tokenizer"].model_max_length == found["model"].config.max_position_embeddings
    print(f"{folder.name:42} the example in the card runs", flush=True)


def check_tokens(folder):
    """Print how many texts have other token IDs and why; return whether every difference has a known reason."""
    stored = json.loads((folder / "texts.json").read_text())
    tokenizer = AutoTokenizer.from_pretrained(str(folder))
    kinds = Counter()
    for text, ours, separate in zip(stored["texts"], stored["ids"], stored["separate"], strict=True):
        theirs = tokenizer(text)["input_ids"]
        if theirs == ours:
            continue
        kind = "symbols" if theirs == separate else "names of special tokens" if SPECIAL.search(text) else "unknown"
        kinds[kind] += 1
        if kinds[kind] <= EXAMPLES_SHOWN:
            print(f"  {kind}: {text[:100]!r}", flush=True)
    print(f"token IDs: {type(tokenizer).__name__}, {len(stored['texts'])} texts, differ: {dict(kinds)}", flush=True)
    return not kinds["unknown"]


def write_theirs(folder):
    """Write models and tokenizers of PaddleNLP, random parameters, with inputs and PaddleNLP's outputs beside them."""
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = folder / "vocab.txt"
    vocabulary.write_text(
        "\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *map(chr, range(0x4E00, 0x4E2D))]) + "\n"
    )
    sizes = {"vocab_size": 50, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
    sizes |= {"intermediate_size": 40, "max_position_embeddings": 40, "initializer_range": 0.2}
    for family, more in (
        ("ErnieGram", {"embedding_size": 32, "rel_pos_size": 33}),
        ("Ernie", {"type_vocab_size": 4}),
        ("Bert", {"hidden_act": "relu"}),
    ):
        config = getattr(transformers, f"{family}Config")(**sizes, **more)
        model = getattr(transformers, f"{family}Model")(config)
        model.eval()
        random = np.random.default_rng(3)
        for parameter in model.parameters():
            noise = 0.2 * random.standard_normal(parameter.shape)
            # What bfloat16 can hold, so that all files have the same numbers.
            values = (parameter + paddle.to_tensor(noise.astype("float32"))).astype("bfloat16")
            parameter.set_value(values.astype("float32"))
        lengths = np.array([20, 7])
        ids = np.where(np.arange(20) < lengths[:, np.newaxis], random.integers(1, 50, (2, 20)), 0)
        segments = random.integers(0, 2, (2, 20))
        sequence, pooled = model(paddle.to_tensor(ids), paddle.to_tensor(segments))[:2]
        for kind in ("safetensors", "pdparams", "bfloat16_safetensors", "bfloat16_pdparams"):
            path = folder / f"{family}_{kind}"
            model.to(dtype="bfloat16" if kind.startswith("bfloat16") else "float32")
            model.save_pretrained(str(path), safe_serialization=kind.endswith("safetensors"))
            getattr(transformers, f"{family}Tokenizer")(str(vocabulary)).save_pretrained(str(path))
            arrays = {"input_ids": ids, "token_type_ids": segments, "lengths": lengths}
            np.savez(f"{path}.npz", **arrays, sequence_output=sequence.numpy(), pooled_output=pooled.numpy())


def main():
    logger.set_level("ERROR")
    folder = Path(sys.argv[1]).resolve()
    good = check_models(folder / "models")
    for path in sorted(path for path in (folder / "models").iterdir() if path.is_dir()):
        check_card(path)
    write_theirs(folder / "theirs")
    for path in sorted((folder / "tokens").iterdir()):
        good &= check_tokens(path)
    sys.exit(0 if good else "an output or a token ID differs")


if __name__ == "__main__":
    main()
