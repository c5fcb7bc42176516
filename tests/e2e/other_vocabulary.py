"""Writes a copy of a GGUF model with another vocabulary: the rarer words are gone, so that texts are cut differently, and
the rest has other numbers. The weights of the words that stay are the same: it drafts nearly as well as the original."""

import sys

import numpy
from gguf import GGUFReader, GGUFValueType, GGUFWriter

KEPT = 20_000
NORMAL = 1  # token type


def write_with_other_vocabulary(source: str, target: str) -> None:
    model = GGUFReader(source)
    fields = {name: field for name, field in model.fields.items() if not name.startswith("GGUF.")}
    tokens, types = fields["tokenizer.ggml.tokens"].contents(), fields["tokenizer.ggml.token_type"].contents()
    first = next(token for token, type in enumerate(types) if type == NORMAL)
    order = [*range(first), *reversed(range(first, KEPT))]  # new number -> old number; special tokens keep theirs
    kept = {tokens[old] for old in order}
    replaced = {
        "tokenizer.ggml.tokens": [tokens[old] for old in order],
        "tokenizer.ggml.token_type": [types[old] for old in order],
        "tokenizer.ggml.merges": [
            merge for merge in fields["tokenizer.ggml.merges"].contents() if merge.replace(" ", "") in kept
        ],
        "llama.vocab_size": len(order),
    }
    writer = GGUFWriter(target, fields.pop("general.architecture").contents())
    for name, field in fields.items():
        value = replaced.get(name, field.contents())
        if field.types[0] == GGUFValueType.ARRAY:
            writer.add_array(name, value)
        else:
            writer.add_key_value(name, value, field.types[0])
    for tensor in model.tensors:
        by_token = tensor.shape[-1] == len(tokens)
        data = numpy.ascontiguousarray(tensor.data[order]) if by_token else tensor.data
        writer.add_tensor(tensor.name, data, raw_dtype=tensor.tensor_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    write_with_other_vocabulary(*sys.argv[1:])
