"""Writes LoRA adapters with random values, strong enough to change what a model says."""

from collections.abc import Callable
from pathlib import Path

import numpy
from gguf import GGMLQuantizationType, GGUFReader, GGUFWriter
from gguf.quants import quantize

CHANGED = ("attn_q.weight", "attn_v.weight", "attn_output.weight", "ffn_down.weight", "ffn_down_exps.weight")


def write_adapter(
    model: Path,
    path: Path,
    *,
    seed: int,
    rank: int = 8,
    alpha: float = 16,
    values: GGMLQuantizationType = GGMLQuantizationType.F16,
    strength: float = 0.5,
    architecture: str | None = None,
    change: Callable[[GGUFWriter], None] = lambda writer: None,
) -> Path:
    """An adapter for `model`. `change`: more metadata."""
    reader = GGUFReader(model)
    writer = GGUFWriter(path, architecture or reader.fields["general.architecture"].contents())
    writer.add_type("adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", alpha)
    change(writer)
    random = numpy.random.Generator(numpy.random.PCG64(seed))
    for tensor in reader.tensors:
        if not tensor.name.endswith(CHANGED):
            continue
        columns, rows, *matrices = (int(size) for size in tensor.shape)
        for part, shape in ((".lora_a", (*matrices, rank, columns)), (".lora_b", (*matrices, rows, rank))):
            numbers = random.standard_normal(shape, dtype=numpy.float32) * (strength / numpy.sqrt(shape[-1]))
            writer.add_tensor(tensor.name + part, quantize(numbers, values), raw_dtype=values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
