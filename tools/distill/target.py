"""What the model's file says about it, read with the gguf package."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from gguf import GGUFReader
from gguf.quants import dequantize

from .problem import Problem

Array = np.ndarray[Any, Any]


@dataclass
class Target:
    path: Path
    architecture: str
    vocabulary: int
    width: int
    layers: int
    name: str
    license: str | None
    reader: GGUFReader

    def has(self, name: str) -> bool:
        return any(tensor.name == name for tensor in self.reader.tensors)

    def tensor(self, name: str) -> Array:
        for tensor in self.reader.tensors:
            if tensor.name == name:
                return np.asarray(dequantize(tensor.data, tensor.tensor_type), np.float32)
        raise Problem(f"{self.path} has no tensor {name}; of a split model, join the parts with llama-gguf-split --merge")

    def embeddings(self) -> Array:
        return self.tensor("token_embd.weight")

    def output(self) -> Array:
        return self.tensor("output.weight" if self.has("output.weight") else "token_embd.weight")

    def tokenizer(self) -> dict[str, tuple[Any, list[Any]]]:
        """All that the file says about it, with the types."""
        return {name: (field.contents(), list(field.types[:2]))
                for name, field in self.reader.fields.items() if name.startswith("tokenizer.")}

    def parameters(self) -> int:
        return sum(int(tensor.n_elements) for tensor in self.reader.tensors)

    def layers_to_read(self) -> list[int]:
        """Whose inputs an EAGLE-3 head gets: near the beginning, in the middle, near the end, as published heads have it."""
        last = self.layers - 3 if self.layers >= 8 else self.layers - 1
        return [min(2, self.layers // 4), self.layers // 2, last]


def read_target(path: Path) -> Target:
    try:
        reader = GGUFReader(path)
    except FileNotFoundError:
        raise Problem(f"-m {path}: there is no such file") from None
    except Exception as error:  # noqa: BLE001  gguf raises what it likes for files that are cut or none of its own
        raise Problem(f"-m {path} is not a GGUF file that can be read ({error})") from None

    def value(key: str) -> Any:
        return reader.fields[key].contents() if key in reader.fields else None

    architecture = value("general.architecture") or ""
    tokens = reader.fields.get("tokenizer.ggml.tokens")
    width, layers = value(f"{architecture}.embedding_length"), value(f"{architecture}.block_count")
    if not tokens or not width or not layers:
        raise Problem(f"-m {path} is no language model: it has no vocabulary or does not say how large it is")
    if architecture in ("eagle3", "dflash"):
        raise Problem(f"-m {path} is a head that drafts for another model: give the model itself")
    return Target(path, architecture, len(tokens.data), int(width), int(layers),
                  str(value("general.name") or path.stem), value("general.license"), reader)
