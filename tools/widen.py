#!/usr/bin/env python3
"""Writes a wider, deeper GGUF of a llama or lfm2 model that computes the same function: every hidden channel several times,
layers that add nothing in between. Real text at the cost of a larger model, for benchmarks. F16; quantise it afterwards.
With --experts, a llama model becomes a mixture: every expert is a copy of the whole feed-forward part, the router is random,
and the weights of the experts of a token add up to one, so that the mixture computes the same function, too.

  tools/widen.py models/smollm2-hybrid-19m.gguf wide-f16.gguf --copies 6 --deep 2
  tools/widen.py models/smollm2-draft-16m.gguf mixture-f16.gguf --copies 3 --deep 1 --experts 64 --active 8
  llama-quantize --pure wide-f16.gguf wide-q4_0.gguf Q4_0
"""

import argparse

import numpy
from gguf import GGUFReader, GGUFValueType, GGUFWriter
from gguf.quants import dequantize

SCALED = ("embedding_length", "feed_forward_length", "attention.head_count", "attention.head_count_kv")
ADDS_TO_THE_STREAM = ("attn_output", "ffn_down", "shortconv.out_proj")


FEED_FORWARD = ("ffn_gate", "ffn_up", "ffn_down")


class Widener:
    def __init__(self, source: str, copies: int, deep: int, experts: int, active: int):
        reader = GGUFReader(source)
        self.fields = reader.fields
        self.weights = {t.name: dequantize(t.data, t.tensor_type).astype(numpy.float32) for t in reader.tensors}
        self.architecture = self.fields["general.architecture"].contents()
        self.copies, self.deep, self.experts, self.active = copies, deep, experts, active
        self.random = numpy.random.Generator(numpy.random.PCG64(1))
        if experts and self.architecture != "llama":
            raise SystemExit(f"--experts: {source} is of the architecture {self.architecture}, not llama")

    def value(self, key: str):
        return self.fields[f"{self.architecture}.{key}"].contents()

    def vector(self, values: numpy.ndarray) -> numpy.ndarray:
        return numpy.concatenate([values] * self.copies)

    def matrix(self, name: str, values: numpy.ndarray) -> numpy.ndarray:
        """Takes copies of a vector to copies of the product."""
        parts = numpy.split(values, 3) if name.endswith("shortconv.in_proj") else [values]  # three results in one
        return numpy.concatenate([numpy.tile(part, (self.copies, self.copies)) / self.copies for part in parts])

    def write_fields(self, writer: GGUFWriter):
        for key, field in self.fields.items():
            if key.startswith("GGUF.") or key == "general.architecture":
                continue
            value, name = field.contents(), key.removeprefix(f"{self.architecture}.")
            if name in SCALED:
                scaled = [self.copies * v for v in value] if isinstance(value, list) else self.copies * value
                value = [v for v in scaled for _ in range(self.deep)] if isinstance(scaled, list) else scaled
            elif name == "block_count":
                value *= self.deep
            elif key == "general.file_type":
                value = 1
            elif key == "general.name":
                value = f"{value}, {self.copies} times as wide, {self.deep} times as deep"
            if field.types[0] == GGUFValueType.ARRAY:
                writer.add_key_value(key, value, GGUFValueType.ARRAY, field.types[1])
            else:
                writer.add_key_value(key, value, field.types[0])
        if self.experts:
            writer.add_expert_count(self.experts)
            writer.add_expert_used_count(self.active)
        heads = self.value("attention.head_count")
        head_length = self.value("embedding_length") // (max(heads) if isinstance(heads, list) else heads)
        for key in ("key_length", "value_length"):
            if f"{self.architecture}.attention.{key}" not in self.fields:
                writer.add_uint32(f"{self.architecture}.attention.{key}", head_length)

    def write_layer(self, writer: GGUFWriter, layer: int, to: int, adds: bool):
        prefix = f"blk.{layer}."
        for full_name, values in self.weights.items():
            if not full_name.startswith(prefix):
                continue
            name = full_name.removeprefix(prefix).removesuffix(".weight")
            if name in ("attn_q_norm", "attn_k_norm"):  # of one head
                wide = values
            elif name.endswith("_norm"):
                wide = self.vector(values)
            elif name == "shortconv.conv":  # a kernel for each channel
                wide = numpy.concatenate([values] * self.copies)
            else:
                wide = self.matrix(name, values).astype(numpy.float16)
                if name in ADDS_TO_THE_STREAM and not adds:
                    wide = numpy.zeros_like(wide)
            if self.experts and name in FEED_FORWARD:
                name, wide = f"{name}_exps", numpy.tile(wide, (self.experts, 1, 1))
            writer.add_tensor(f"blk.{to}.{name}.weight", wide)
        if self.experts:
            width = self.copies * self.value("embedding_length")
            router = self.random.normal(0, 2 / width**0.5, (self.experts, width))
            writer.add_tensor(f"blk.{to}.ffn_gate_inp.weight", router.astype(numpy.float32))

    def write(self, path: str):
        writer = GGUFWriter(path, self.architecture)
        self.write_fields(writer)
        embedding = numpy.concatenate([self.weights["token_embd.weight"]] * self.copies, 1)
        writer.add_tensor("token_embd.weight", embedding.astype(numpy.float16))
        for name in ("output_norm.weight", "token_embd_norm.weight"):  # what follows sums over all copies
            if name in self.weights:
                writer.add_tensor(name, self.vector(self.weights[name]) / self.copies)
        for layer in range(self.value("block_count")):
            for copy in range(self.deep):
                self.write_layer(writer, layer, layer * self.deep + copy, adds=copy == 0)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source")
    parser.add_argument("target")
    parser.add_argument("--copies", type=int, default=2, help="of each hidden channel")
    parser.add_argument("--deep", type=int, default=2, help="layers for each layer of the source")
    parser.add_argument("--experts", type=int, default=0, help="copies of the feed-forward part of each layer")
    parser.add_argument("--active", type=int, default=8, help="experts of a token")
    options = parser.parse_args()
    Widener(options.source, options.copies, options.deep, options.experts, options.active).write(options.target)


if __name__ == "__main__":
    main()
