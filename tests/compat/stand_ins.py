"""The models that stand in for those that llama.cpp's tests fetch from a hub. Some tests need what the in-repo models do not
have: such models are made here, the same bytes each time."""

import functools
import os
import sys
import tempfile
from pathlib import Path

import numpy
from gguf import GGUFReader, GGUFValueType, GGUFWriter

ROOT = Path(__file__).resolve().parents[2]
MODELS = Path(os.environ.get("OUTRIDER_MODELS_DIR") or ROOT / "models").resolve()
DRAFT = MODELS / "smollm2-draft-16m.gguf"
DEFAULT = Path(os.environ.get("OUTRIDER_DEFAULT_MODEL") or DRAFT).resolve()

sys.path.append(str(ROOT / "tests/e2e"))
from adapters import write_adapter  # noqa: E402

# Tokens of SmolLM2 that mark parts of files; a model for infilling has such marks under these names.
INFILL_MARKS = {"pre": 6, "suf": 7, "mid": 8, "rep": 9, "sep": 10}


@functools.cache
def adapter_of_default() -> Path:
    """An adapter for the default model, with random values."""
    return write_adapter(DEFAULT, Path(tempfile.mkdtemp()) / "adapter.gguf", seed=1)


def write_with_fields(source: Path, target: Path, more: dict[str, int]) -> None:
    """A copy of a GGUF file with more numbers in its head."""
    model = GGUFReader(source)
    fields = {name: field for name, field in model.fields.items() if not name.startswith("GGUF.")}
    writer = GGUFWriter(target, fields.pop("general.architecture").contents())
    for name, field in fields.items():
        if field.types[0] == GGUFValueType.ARRAY:
            writer.add_array(name, field.contents())
        else:
            writer.add_key_value(name, field.contents(), field.types[0])
    for name, value in more.items():
        writer.add_uint32(name, value)
    for tensor in model.tensors:
        writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
    finish(writer)


def finish(writer: GGUFWriter) -> None:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write_infill_model(target: Path) -> None:
    """The draft model, with marks for the parts of a file; it has not learned what they mean."""
    write_with_fields(DRAFT, target, {f"tokenizer.ggml.fim_{part}_token_id": token for part, token in INFILL_MARKS.items()})


def write_rerank_model(target: Path, seed: int = 1) -> None:
    """Two layers of Qwen3 with a head that ranks, which has two labels. Its weights are random: it has an opinion of each
    text, but not a good one."""
    width, feed_forward, head, layers = 64, 128, 32, 2
    random = numpy.random.Generator(numpy.random.PCG64(seed))

    def matrix(rows: int, columns: int, gain: float) -> numpy.ndarray:
        limit = gain * (3 / columns) ** 0.5
        return random.uniform(-limit, limit, (rows, columns)).astype(numpy.float32)

    writer = GGUFWriter(target, "qwen3")
    for name, field in GGUFReader(DRAFT).fields.items():
        if name.startswith("tokenizer."):
            writer.add_key_value(name, field.contents(), *field.types[:2])
    tokens = len(GGUFReader(DRAFT).fields["tokenizer.ggml.tokens"].data)
    writer.add_name("Random reranker")
    writer.add_context_length(1024)
    writer.add_embedding_length(width)
    writer.add_block_count(layers)
    writer.add_feed_forward_length(feed_forward)
    writer.add_head_count(2)
    writer.add_head_count_kv(1)
    writer.add_key_length(head)
    writer.add_value_length(head)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_uint32("qwen3.pooling_type", 4)  # rank
    writer.add_array("qwen3.classifier.output_labels", ["yes", "no"])
    writer.add_tensor("token_embd.weight", matrix(tokens, width, 8))
    writer.add_tensor("output_norm.weight", numpy.ones(width, numpy.float32))
    writer.add_tensor("cls.output.weight", matrix(2, width, 2))
    for layer in range(layers):
        block = f"blk.{layer}"
        for name, size in (("attn_norm", width), ("attn_q_norm", head), ("attn_k_norm", head), ("ffn_norm", width)):
            writer.add_tensor(f"{block}.{name}.weight", numpy.ones(size, numpy.float32))
        for name, rows, columns in (
            ("attn_q", 2 * head, width),
            ("attn_k", head, width),
            ("attn_v", head, width),
            ("attn_output", width, 2 * head),
            ("ffn_gate", feed_forward, width),
            ("ffn_up", feed_forward, width),
            ("ffn_down", width, feed_forward),
        ):
            writer.add_tensor(f"{block}.{name}.weight", matrix(rows, columns, 1.5))
    finish(writer)
