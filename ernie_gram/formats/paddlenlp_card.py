"""The parts of a model card about PaddleNLP: how to load the folder, and what PaddleNLP does differently."""

from __future__ import annotations

from ernie_gram.formats.model import Model
from ernie_gram.formats.paddlenlp_config import VERSION, TaskHead

EXAMPLE = "exact_relative_position.py"

# Class -> its outputs, and what they are.
OUTPUTS = {
    "AutoModel": (
        "sequence_output, pooled_output",
        "`sequence_output` is float32 [texts, tokens, hidden_size]. For fine-tuning, load the folder with\n"
        "`ErnieGramForSequenceClassification`, `ErnieGramForTokenClassification` or `ErnieGramForQuestionAnswering`.",
    ),
    "ErnieGramForSequenceClassification": ("logits", "`logits` is float32 [texts, classes]."),
    "ErnieGramForTokenClassification": ("logits", "`logits` is float32 [texts, tokens, classes]."),
    "ErnieGramForQuestionAnswering": ("start_logits, end_logits", "Both are float32 [texts, tokens]."),
}
CALL_WITH_MASK = """table = {encoder}.embeddings.rel_pos_embeddings.weight.numpy()
mask = attention_mask(table, inputs["input_ids"].numpy() != tokenizer.pad_token_id)
{outputs} = model(
    inputs["input_ids"], inputs["token_type_ids"], attention_mask=paddle.to_tensor(mask)
)"""
ABOUT_MASK = f"""
`{EXAMPLE}` needs nothing but numpy. Without the mask, PaddleNLP computes something else. The mask is
a constant: fine-tuning in PaddleNLP does not train the table, which the ErnieGramFor... classes have as
`model.ernie_gram.embeddings.rel_pos_embeddings.weight`.
"""
TOKENIZER = (
    "tokenizer: ErnieGramTokenizer makes each symbol (such as € ° → ™ or an emoji) a word, and the name of a special "
    "token in a text, such as `[SEP]`, the special token. The model was trained without these two rules, so such texts "
    "have other token IDs: 0.06 % of the fields of GLUE's development sets, 0.19 % of CLUE's"
)
SEGMENTS = (
    "segments: PaddleNLP always adds segment embeddings; the model has none, so their table is zero, and fine-tuning "
    "in PaddleNLP trains it"
)
POOLER = "pooler: the model has none; PaddleNLP draws one at random when it loads the folder, and says so"

# Only in the folder itself: the copy of the card in community/ is for readers.
PUBLISHING = """
## Before you publish this folder

`community/` holds what PaddleNLP's listing of models asks for. Put the name of your organisation in place of
`ORGANISATION`, in the name of the folder and in the addresses of `files.json`, and upload the four files to these
addresses. State the licence and the training data in the front matter and the text of both cards. Then remove this
section.
"""


def loading(needs_mask: bool, head: TaskHead | None, task: str) -> str:
    """Return how to load a folder, in Markdown with an example.

    Args:
        needs_mask: whether only the mask of EXAMPLE makes the outputs exact.
        head: the output layer in the folder, if there is one.
        task: the name of its task; "" if unknown.
    """
    class_name, encoder = (head.architecture, "model.ernie_gram") if head else ("AutoModel", "model")
    outputs, meaning = OUTPUTS[class_name]
    imported, call, about_mask = "", f"{outputs} = model(**inputs)", ""
    if needs_mask:
        imported, about_mask = "from exact_relative_position import attention_mask\n", ABOUT_MASK
        call = CALL_WITH_MASK.format(encoder=encoder, outputs=outputs)
    return f"""{_output_layer(head, task)}PaddleNLP ({VERSION} was tested) loads this folder. In the folder, run:

```python
import paddle
from paddlenlp.transformers import AutoTokenizer, {class_name}
{imported}
tokenizer, model = AutoTokenizer.from_pretrained("."), {class_name}.from_pretrained(".")
model.eval()
inputs = tokenizer(["Give the texts", "in a list."], padding=True, return_tensors="pd")
{call}
```

{meaning}
{about_mask}"""


def _output_layer(head: TaskHead | None, task: str) -> str:
    """Return which output layer a folder has, in Markdown."""
    if head is None:
        return ""
    labels = f"; its classes are {', '.join(f'`{label}`' for label in head.labels)}" if head.labels else ""
    of = f"the task `{task}`" if task else "a task"
    return f"The folder has the output layer of {of}, `{head.architecture}`{labels}.\n\n"


def differences(model: Model) -> list[str]:
    """Return what PaddleNLP does differently without a loss, one sentence each."""
    return [
        TOKENIZER,
        *([] if model.config.use_sentence_embedding else [SEGMENTS]),
        *([] if model.config.use_pooler else [POOLER]),
    ]
