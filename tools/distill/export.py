"""Stage 4: the GGUF file."""

from pathlib import Path

import numpy as np
from gguf import GGML_QUANT_VERSION, GGMLQuantizationType, GGUFValueType, GGUFWriter, LlamaFileType
from gguf.quants import quantize

from . import draft_model, eagle3_head
from .network import EPSILON, HEAD
from .optimiser import Weights
from .quantise import BLOCK, TYPES
from .target import Array, Target

CONTEXT = 8192


def _add_heading(writer: GGUFWriter, target: Target, what: str) -> None:
    writer.add_name(f"{target.name}, {what}")
    writer.add_description(f"Made by outrider distill from text that {target.name} wrote itself")
    if target.license:
        writer.add_license(target.license)
    writer.add_quantization_version(GGML_QUANT_VERSION)
    writer.add_file_type(LlamaFileType.MOSTLY_Q8_0)
    for name, (value, types) in target.tokenizer().items():
        if types[0] == GGUFValueType.ARRAY:
            writer.add_key_value(name, value, GGUFValueType.ARRAY, types[1])
        else:
            writer.add_key_value(name, value, types[0])


def _add_tensor(writer: GGUFWriter, name: str, values: Array, kind: str | None) -> None:
    values = np.ascontiguousarray(values, np.float32)
    if values.ndim == 1:
        writer.add_tensor(name, values)
    elif kind is None or kind == "f16" or values.shape[-1] % BLOCK:
        writer.add_tensor(name, values.astype(np.float16), raw_dtype=GGMLQuantizationType.F16)
    else:
        writer.add_tensor(name, quantize(values, TYPES[kind]), raw_dtype=TYPES[kind])


def _write(writer: GGUFWriter) -> None:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write_draft_model(path: Path, network: draft_model.DraftModel, target: Target, weights: Weights) -> None:
    writer = GGUFWriter(path, "llama")
    _add_heading(writer, target, "draft model")
    writer.add_block_count(network.layers)
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(network.width)
    writer.add_feed_forward_length(network.feed_forward)
    writer.add_head_count(network.heads)
    writer.add_head_count_kv(network.kv_heads)
    writer.add_rope_dimension_count(HEAD)
    writer.add_rope_freq_base(draft_model.ROPE_BASE)
    writer.add_layer_norm_rms_eps(EPSILON)
    writer.add_vocab_size(network.vocabulary)
    for name, values in weights.items():
        _add_tensor(writer, name, np.asarray(values), network.types().get(name))
    _write(writer)


def write_eagle3_head(path: Path, network: eagle3_head.Eagle3Head, target: Target, weights: Weights) -> None:
    writer = GGUFWriter(path, "eagle3")
    _add_heading(writer, target, "EAGLE-3 head")
    numbers = {"context_length": CONTEXT, "embedding_length": network.width, "block_count": 1,
               "feed_forward_length": network.feed_forward, "attention.head_count": network.heads,
               "attention.head_count_kv": network.kv_heads, "attention.key_length": HEAD, "attention.value_length": HEAD,
               "rope.dimension_count": HEAD, "target_hidden_size": target.width}
    for name, number in numbers.items():
        writer.add_uint32(f"eagle3.{name}", number)
    writer.add_array("eagle3.target_layers", network.layers_read)
    writer.add_float32("eagle3.attention.layer_norm_rms_epsilon", EPSILON)
    writer.add_float32("eagle3.rope.freq_base", eagle3_head.ROPE_BASE)
    writer.add_bool("eagle3.norm_before_residual", True)
    for name, values in weights.items():
        matrix: Array = np.asarray(values)
        if name == "fc.weight":  # the file's head gets the states as they are
            matrix = matrix / network.scale
        _add_tensor(writer, name, matrix, network.types().get(name))
    if len(network.shortlist) < network.vocabulary:
        writer.add_tensor("d2t", network.shortlist.astype(np.int64))
    _write(writer)
