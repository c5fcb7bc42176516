"""Writes projectors with random weights, in llama.cpp's format: a small vision transformer and what makes rows as wide as the
embeddings of a model: two layers (LLaVA's "mlp"), or one that joins four neighbours (Idefics3), which cuts large pictures into
slices. They see nothing, but what they say of a picture depends on each of its pixels.

The matrices are F16, as in the files that people have. And pictures: PNG, written by hand."""

import struct
import zlib
from pathlib import Path

import numpy
from gguf import GGUFReader, GGUFValueType, GGUFWriter
from harness import DRAFT_MODEL

SIDE, PATCH = 56, 14
ROWS = (SIDE // PATCH) ** 2  # of a picture
WIDTH, HEADS, FEED_FORWARD = 64, 2, 128
MERGED = 2  # patches on each side that become one row, of Idefics3
SLICE_ROWS = ROWS // MERGED**2
# What Idefics3 puts around slices, and special tokens of SmolLM2 that are called so in a copy of the model.
MARKS = {
    6: "<fake_token_around_image>",
    7: "<global-img>",
    8: "<row_1_col_1>",
    9: "<row_1_col_2>",
    10: "<row_2_col_1>",
    11: "<row_2_col_2>",
}


def embedding_size(model: Path) -> int:
    reader = GGUFReader(model)
    architecture = reader.fields["general.architecture"].contents()
    return int(reader.fields[f"{architecture}.embedding_length"].contents())


def write_projector(model: Path, path: Path, *, kind: str = "mlp", width: int = 0, seed: int = 7) -> None:
    """A projector for `model`. `width`: of its rows, if that is not to be the model's."""
    width = width or embedding_size(model)
    random = numpy.random.Generator(numpy.random.PCG64(seed))
    writer = GGUFWriter(path, "clip")
    writer.add_bool("clip.has_vision_encoder", True)
    writer.add_string("clip.projector_type", kind)
    writer.add_bool("clip.use_gelu", True)
    for name, value in {
        "image_size": SIDE,
        "patch_size": PATCH,
        "embedding_length": WIDTH,
        "feed_forward_length": FEED_FORWARD,
        "block_count": 2,  # LLaVA leaves out the last one
        "projection_dim": width,
        "attention.head_count": HEADS,
    }.items():
        writer.add_uint32(f"clip.vision.{name}", value)
    writer.add_float32("clip.vision.attention.layer_norm_epsilon", 1e-5)
    writer.add_array("clip.vision.image_mean", [0.5, 0.5, 0.5])
    writer.add_array("clip.vision.image_std", [0.25, 0.25, 0.25])

    def matrix(name: str, *shape: int, gain: float = 1.0):
        inputs = int(numpy.prod(shape[1:]))
        spread = gain * (3 / inputs) ** 0.5
        writer.add_tensor(f"{name}.weight", random.uniform(-spread, spread, shape).astype(numpy.float16))
        if len(shape) == 2:
            writer.add_tensor(f"{name}.bias", random.uniform(-0.1, 0.1, shape[0]).astype(numpy.float32))

    def norm(name: str):
        writer.add_tensor(f"{name}.weight", random.uniform(0.8, 1.2, WIDTH).astype(numpy.float32))
        writer.add_tensor(f"{name}.bias", random.uniform(-0.1, 0.1, WIDTH).astype(numpy.float32))

    if kind in ("idefics3", "gemma3"):
        writer.add_uint32("clip.vision.projector.scale_factor", MERGED)
        writer.add_uint32("clip.vision.preproc_image_size", 2 * SIDE)

    matrix("v.patch_embd", WIDTH, 3, PATCH, PATCH)
    positions = ROWS
    if kind == "mlp":
        positions += 1
        writer.add_tensor("v.class_embd", random.uniform(-1, 1, WIDTH).astype(numpy.float32))
        norm("v.pre_ln")
    writer.add_tensor("v.position_embd.weight", random.uniform(-0.3, 0.3, (positions, WIDTH)).astype(numpy.float32))
    for block in range(2):
        for name in ("attn_q", "attn_k", "attn_v", "attn_out"):
            matrix(f"v.blk.{block}.{name}", WIDTH, WIDTH)
        norm(f"v.blk.{block}.ln1")
        norm(f"v.blk.{block}.ln2")
        matrix(f"v.blk.{block}.ffn_up", FEED_FORWARD, WIDTH)
        matrix(f"v.blk.{block}.ffn_down", WIDTH, FEED_FORWARD)
    match kind:
        case "idefics3":
            matrix("mm.model.fc", width, MERGED**2 * WIDTH, gain=0.3)
        case "gemma3":
            matrix("mm.input_projection", WIDTH, width)
            writer.add_tensor("mm.soft_emb_norm.weight", numpy.ones(WIDTH, dtype=numpy.float32))
        case _:
            matrix("mm.0", width, WIDTH)
            matrix("mm.2", width, width, gain=0.3)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write_model_with_marks(path: Path) -> None:
    """The draft model with the tokens that Idefics3 puts around slices."""
    model = GGUFReader(DRAFT_MODEL)
    fields = {name: field for name, field in model.fields.items() if not name.startswith("GGUF.")}
    writer = GGUFWriter(path, fields.pop("general.architecture").contents())
    for name, field in fields.items():
        value = field.contents()
        if name == "tokenizer.ggml.tokens":
            value = [MARKS.get(token, text) for token, text in enumerate(value)]
        if field.types[0] == GGUFValueType.ARRAY:
            writer.add_array(name, value)
        else:
            writer.add_key_value(name, value, field.types[0])
    for tensor in model.tensors:
        writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def png(pixels: numpy.ndarray, *, claims: tuple[int, int] | None = None) -> bytes:
    """A PNG of pixels[row, column] with three bytes each. `claims`: width and height that it says it has."""
    height, width, _ = pixels.shape

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", *(claims or (width, height)), 8, 2, 0, 0, 0)
    lines = b"".join(b"\0" + row.tobytes() for row in pixels)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")
    )


def picture(seed: int, width: int = 64, height: int = 48) -> bytes:
    random = numpy.random.Generator(numpy.random.PCG64(seed))
    return png(random.integers(0, 256, (height, width, 3), dtype=numpy.uint8))
