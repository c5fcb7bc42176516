"""Writes EAGLE-3 heads by hand. They are not trained, but they draft: a row looks for the last row whose previous token is
its own token, and says what followed there (an induction head).

For that, the head's state of a target's row is the embedding of the row's token, which is the input of layer 0. A query is
a projection of the row's token and a key the same projection of the token before, so attention finds earlier occurrences of
the token; the values are the embeddings of the tokens there. Heads keep the sign of what they say reversed, so that the
rows of drafted tokens, whose state is what the head said, repel each other."""

import functools
from pathlib import Path

import numpy
from gguf import GGMLQuantizationType, GGUFReader, GGUFWriter
from gguf.quants import dequantize
from random_models import vocabulary

HEAD = 64
ROTATED = 2  # numbers of a head that depend on the position: not used
SHARPNESS = 40
FEED_FORWARD = 32
OWN_TOKENS = 16384


@functools.cache
def embeddings_of(model: Path) -> numpy.ndarray:
    tensor = next(t for t in GGUFReader(model).tensors if t.name == "token_embd.weight")
    return dequantize(tensor.data, tensor.tensor_type).astype(numpy.float32)


def normalised(rows: numpy.ndarray) -> numpy.ndarray:
    return rows / numpy.sqrt((rows**2).mean(axis=-1, keepdims=True) + 1e-6)


def write_eagle3(target: Path, path: Path, *, own_tokens: int = OWN_TOKENS, borrows: bool = False, **changed) -> None:
    """A head for `target`, which says only so many of its tokens (d2t). `borrows`: it says what the target's own output
    layer makes of it. `changed`: metadata, or `d2t`, that are different from what they should be."""
    embeddings = embeddings_of(target)
    tokens, width = embeddings.shape
    words = normalised(embeddings)
    heads = width // HEAD
    random = numpy.random.Generator(numpy.random.PCG64(5))
    values = {
        "context_length": 8192,
        "embedding_length": width,
        "block_count": 1,
        "feed_forward_length": FEED_FORWARD,
        "attention.head_count": heads,
        "attention.head_count_kv": heads,
        "attention.key_length": HEAD,
        "attention.value_length": HEAD,
        "rope.dimension_count": ROTATED,
        "target_hidden_size": width,
        "target_layers": [0, 1, 2],
    } | {name: value for name, value in changed.items() if name != "d2t"}
    writer = GGUFWriter(path, "eagle3")
    for name, (value, types) in vocabulary().items():
        writer.add_key_value(name, value, *types)
    for name, value in values.items():
        (writer.add_array if isinstance(value, list) else writer.add_uint32)(f"eagle3.{name}", value)
    writer.add_float32("eagle3.attention.layer_norm_rms_epsilon", 1e-5)
    writer.add_float32("eagle3.rope.freq_base", 10000)
    writer.add_bool("eagle3.norm_before_residual", True)

    def add(name: str, weights: numpy.ndarray):
        kind = GGMLQuantizationType.F16 if weights.ndim > 1 else GGMLQuantizationType.F32
        data = weights.astype(numpy.float16 if weights.ndim > 1 else numpy.float32)
        writer.add_tensor(f"{name}.weight", numpy.ascontiguousarray(data), raw_dtype=kind)

    nothing, same = numpy.zeros((width, width)), numpy.eye(width)
    little = 0.01  # of the state goes on to the output
    centre = words.mean(axis=0)
    centre /= numpy.linalg.norm(centre)
    project = random.normal(0, (SHARPNESS / HEAD) ** 0.5 * HEAD**0.25 / width**0.5, (width, width))
    project -= numpy.outer(project @ centre, centre)
    project[numpy.arange(width) % HEAD < ROTATED] = 0
    add("fc", numpy.hstack([same, nothing, nothing]))
    add("blk.0.attn_norm", numpy.ones(width))
    add("blk.0.attn_norm_2", numpy.full(width, little))
    add("blk.0.attn_q", numpy.hstack([project, nothing]))
    add("blk.0.attn_k", numpy.hstack([nothing, project / little]))
    add("blk.0.attn_v", numpy.hstack([same, nothing]))
    add("blk.0.attn_output", -same)
    add("blk.0.ffn_norm", numpy.ones(width))
    add("blk.0.ffn_gate", numpy.zeros((FEED_FORWARD, width)))
    add("blk.0.ffn_up", numpy.zeros((FEED_FORWARD, width)))
    add("blk.0.ffn_down", numpy.zeros((width, FEED_FORWARD)))
    add("output_norm", numpy.ones(width))
    said = numpy.arange(min(own_tokens, tokens))
    if not borrows:
        directions = words[said] - words.mean(axis=0)
        add("output", -20 * directions / numpy.linalg.norm(directions, axis=1, keepdims=True) / width**0.5)
        writer.add_tensor("d2t", numpy.asarray(changed.get("d2t", said), dtype=numpy.int64))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
