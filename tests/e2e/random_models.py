"""Writes tiny GGUF models with random weights, of architectures that carry a state from token to token, of mixtures of
experts, and of some with a head for multi-token prediction. Each is a function of its name and a seed, bit for bit, and has the
vocabulary and the chat template of the in-repo draft model. What they say is noise, but it depends on all that was said before: a
wrong state shows in the next tokens.

Every weight of a matrix product is Q8_0, also those that llama-quantize leaves alone (the router of experts, the
low-rank products of RWKV): only with quantised weights is a result independent of how many tokens are decoded at once,
whosever kernels compute it. The mixtures of experts have routers in F32, as files have them, for which it takes ours.
What ggml convolves, scans, adds or multiplies element by element is F32, also where it has more than one dimension
(ssm_conv1d, ssm_a, ssm_d, a grouped ssm_norm, time_mix_lerp_fused): it takes nothing else there. Heads and states have
sizes for which there are CUDA kernels, too."""

import functools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
from gguf import GGML_QUANT_VERSION, GGMLQuantizationType, GGUFReader, GGUFValueType, GGUFWriter, LlamaFileType
from gguf.quants import quantize
from harness import DRAFT_MODEL
from other_vocabulary import NORMAL

CONTEXT = 4096
WIDTH = 64
INNER = 2 * WIDTH  # of a state space layer: llama.cpp knows no other expansion
CONVOLVED = 4  # tokens
FEED_FORWARD = 128
HEAD, HEADS, KV_HEADS = 64, 2, 1  # of an attention layer
SSM_HEADS, SSM_GROUPS, SSM_STATE = 8, 2, 128  # of a Mamba-2 layer
DELTA_KEY_HEADS, DELTA_VALUE_HEADS, DELTA_STATE = 2, 4, 32
EXPERTS, EXPERTS_USED, EXPERT_FEED_FORWARD = 4, 2, 32
RANK = 32  # of low-rank products: one block of Q8_0
EPSILON = 1e-5


@functools.cache
def vocabulary() -> dict[str, tuple[Any, list[GGUFValueType]]]:
    """The values and types of all that the draft model says about its tokens."""
    fields = GGUFReader(DRAFT_MODEL).fields.items()
    return {name: (field.contents(), field.types[:2]) for name, field in fields if name.startswith("tokenizer.")}


class RandomModel:
    """A GGUF file that is filled tensor by tensor; the order is part of what the seed stands for."""

    def __init__(self, architecture: str, path: Path, seed: int):
        self._architecture = architecture
        self._random = numpy.random.Generator(numpy.random.PCG64(seed))
        self._writer = GGUFWriter(path, architecture)
        self._writer.add_name(f"Random {architecture}, seed {seed}")
        self._writer.add_quantization_version(GGML_QUANT_VERSION)
        self._writer.add_file_type(LlamaFileType.MOSTLY_Q8_0)
        for name, (value, types) in vocabulary().items():
            self._writer.add_key_value(name, value, *types)
        self._special = numpy.array(vocabulary()["tokenizer.ggml.token_type"][0]) != NORMAL

    def set(self, values: dict[str, int | float | list[int]]):
        for name, value in values.items():
            key = f"{self._architecture}.{name}"
            match value:
                case list():
                    self._writer.add_array(key, value)
                case float():
                    self._writer.add_float32(key, value)
                case _:
                    self._writer.add_uint32(key, value)

    def vector(self, name: str, low: float, high: float, *shape: int):
        """Numbers between low and high, in F32; uniform ones need no function that differs between machines."""
        self._writer.add_tensor(name, self._uniform(low, high, shape))

    def norm(self, name: str, *shape: int):
        self.vector(f"{name}.weight", 0.8, 1.2, *shape or (WIDTH,))

    def matrix(self, name: str, *shape: int, gain: float, kind: GGMLQuantizationType = GGMLQuantizationType.Q8_0):
        """Weights of a product; the gain is the standard deviation of what it makes of input that has 1."""
        self._add_quantised(name, self._weights(shape, gain), kind)

    def fixed(self, name: str, weights: numpy.ndarray):
        """These weights of a product, in Q8_0."""
        self._add_quantised(name, weights.astype(numpy.float32))

    def embeddings(self):
        self.matrix("token_embd", len(self._special), WIDTH, gain=WIDTH**0.5 / 2)  # less than what the layers add

    def output(self):
        """The last layer; no special token is ever the most probable one, so that no text ends by itself."""
        self.norm("output_norm")
        weights = self._weights((len(self._special), WIDTH), gain=4)
        weights[self._special] = 0
        self._add_quantised("output", weights)

    def write(self):
        self._writer.write_header_to_file()
        self._writer.write_kv_data_to_file()
        self._writer.write_tensors_to_file()
        self._writer.close()

    def _weights(self, shape: tuple[int, ...], gain: float) -> numpy.ndarray:
        limit = gain * (3 / shape[-1]) ** 0.5
        return self._uniform(-limit, limit, shape)

    def _uniform(self, low: float, high: float, shape: tuple[int, ...]) -> numpy.ndarray:
        return self._random.uniform(low, high, shape).astype(numpy.float32)

    def _add_quantised(
        self, name: str, weights: numpy.ndarray, kind: GGMLQuantizationType = GGMLQuantizationType.Q8_0
    ):
        self._writer.add_tensor(f"{name}.weight", quantize(weights, kind), raw_dtype=kind)


def add_mamba(model: RandomModel):
    layers, state = 3, 16
    model.set(
        {
            "block_count": layers,
            "attention.layer_norm_rms_epsilon": EPSILON,
            "ssm.conv_kernel": CONVOLVED,
            "ssm.inner_size": INNER,
            "ssm.state_size": state,
            "ssm.time_step_rank": RANK,
        }
    )
    for layer in range(layers):
        block = f"blk.{layer}"
        model.norm(f"{block}.attn_norm")
        model.matrix(f"{block}.ssm_in", 2 * INNER, WIDTH, gain=2)
        add_convolution(model, block, INNER)
        model.matrix(f"{block}.ssm_x", RANK + 2 * state, INNER, gain=1.5)
        model.matrix(f"{block}.ssm_dt", INNER, RANK, gain=0.5)
        model.vector(f"{block}.ssm_dt.bias", -4, -1, INNER)
        model.vector(f"{block}.ssm_a", -1.5, -0.2, INNER, state)
        model.vector(f"{block}.ssm_d", 0, 0.2, INNER)
        model.matrix(f"{block}.ssm_out", WIDTH, INNER, gain=0.5)


def add_granite_hybrid(model: RandomModel):
    kv_heads = [0, 0, KV_HEADS, 0]  # none: a recurrent layer
    model.set({"feed_forward_length": FEED_FORWARD, "rope.dimension_count": HEAD})
    set_mamba2_hybrid(model, kv_heads)
    for layer, attends in enumerate(kv_heads):
        block = f"blk.{layer}"
        (add_attention if attends else add_mamba2)(model, block)
        model.norm(f"{block}.ffn_norm")
        add_gated_feed_forward(model, block, "", FEED_FORWARD)


def add_nemotron_h(model: RandomModel):
    kv_heads = [0, 0, KV_HEADS, 0]
    feed_forward = [0, FEED_FORWARD, 0, 0]  # neither: a recurrent layer
    model.set({"feed_forward_length": feed_forward, "attention.layer_norm_epsilon": EPSILON})
    set_mamba2_hybrid(model, kv_heads)
    for layer, (attends, feeds_forward) in enumerate(zip(kv_heads, feed_forward, strict=True)):
        block = f"blk.{layer}"
        if feeds_forward:
            model.norm(f"{block}.attn_norm")
            model.matrix(f"{block}.ffn_up", FEED_FORWARD, WIDTH, gain=1.5)
            model.matrix(f"{block}.ffn_down", WIDTH, FEED_FORWARD, gain=0.4)
        else:
            (add_attention if attends else add_mamba2)(model, block)


def set_mamba2_hybrid(model: RandomModel, kv_heads: list[int]):
    model.set(
        {
            "block_count": len(kv_heads),
            "attention.head_count": HEADS,
            "attention.head_count_kv": kv_heads,
            "attention.key_length": HEAD,
            "attention.value_length": HEAD,
            "attention.layer_norm_rms_epsilon": EPSILON,
            "ssm.conv_kernel": CONVOLVED,
            "ssm.inner_size": INNER,
            "ssm.state_size": SSM_STATE,
            "ssm.time_step_rank": SSM_HEADS,
            "ssm.group_count": SSM_GROUPS,
        }
    )


def add_mamba2(model: RandomModel, block: str):
    convolved = INNER + 2 * SSM_GROUPS * SSM_STATE
    model.norm(f"{block}.attn_norm")
    model.matrix(f"{block}.ssm_in", INNER + convolved + SSM_HEADS, WIDTH, gain=2)
    add_convolution(model, block, convolved)
    model.vector(f"{block}.ssm_dt.bias", -5, -2, SSM_HEADS)
    model.vector(f"{block}.ssm_a", -1, -0.1, SSM_HEADS, 1)
    model.vector(f"{block}.ssm_d", 0, 0.2, SSM_HEADS, 1)
    model.norm(f"{block}.ssm_norm", SSM_GROUPS, INNER // SSM_GROUPS)
    model.matrix(f"{block}.ssm_out", WIDTH, INNER, gain=1.5)


def add_convolution(model: RandomModel, block: str, channels: int):
    model.vector(f"{block}.ssm_conv1d.weight", -0.8, 0.8, channels, CONVOLVED)
    model.vector(f"{block}.ssm_conv1d.bias", -0.2, 0.2, channels)


def add_attention(model: RandomModel, block: str, query_parts: int = 1):
    model.norm(f"{block}.attn_norm")
    model.matrix(f"{block}.attn_q", query_parts * HEADS * HEAD, WIDTH, gain=2)
    model.matrix(f"{block}.attn_k", KV_HEADS * HEAD, WIDTH, gain=2)
    model.matrix(f"{block}.attn_v", KV_HEADS * HEAD, WIDTH, gain=1.5)
    model.matrix(f"{block}.attn_output", WIDTH, HEADS * HEAD, gain=1.5)


def add_gated_feed_forward(
    model: RandomModel,
    block: str,
    suffix: str,
    size: int,
    *experts: int,
    kind: GGMLQuantizationType = GGMLQuantizationType.Q8_0,
):
    model.matrix(f"{block}.ffn_gate{suffix}", *experts, size, WIDTH, gain=1.5, kind=kind)
    model.matrix(f"{block}.ffn_up{suffix}", *experts, size, WIDTH, gain=1.5, kind=kind)
    model.matrix(f"{block}.ffn_down{suffix}", *experts, WIDTH, size, gain=1, kind=kind)


def add_qwen3next(model: RandomModel):
    layers, interval = 4, 4  # the last one is full attention
    keys, values = DELTA_KEY_HEADS * DELTA_STATE, DELTA_VALUE_HEADS * DELTA_STATE
    model.set(
        {
            "block_count": layers,
            "full_attention_interval": interval,
            "attention.head_count": HEADS,
            "attention.head_count_kv": KV_HEADS,
            "attention.key_length": HEAD,
            "attention.value_length": HEAD,
            "attention.layer_norm_rms_epsilon": EPSILON,
            "rope.dimension_count": HEAD // 4,
            "ssm.conv_kernel": CONVOLVED,
            "ssm.inner_size": values,
            "ssm.state_size": DELTA_STATE,
            "ssm.time_step_rank": DELTA_VALUE_HEADS,
            "ssm.group_count": DELTA_KEY_HEADS,
            "expert_count": EXPERTS,
            "expert_used_count": EXPERTS_USED,
            "expert_feed_forward_length": EXPERT_FEED_FORWARD,
            "expert_shared_feed_forward_length": EXPERT_FEED_FORWARD,
        }
    )
    for layer in range(layers):
        block = f"blk.{layer}"
        if (layer + 1) % interval == 0:
            add_attention(model, block, query_parts=2)  # the second one is a gate
            model.norm(f"{block}.attn_q_norm", HEAD)
            model.norm(f"{block}.attn_k_norm", HEAD)
        else:
            model.norm(f"{block}.attn_norm")
            model.matrix(f"{block}.attn_qkv", 2 * keys + values, WIDTH, gain=2)
            model.matrix(f"{block}.attn_gate", values, WIDTH, gain=2)
            model.vector(f"{block}.ssm_conv1d.weight", -0.8, 0.8, 2 * keys + values, CONVOLVED)
            model.vector(f"{block}.ssm_dt.bias", -4, -1.5, DELTA_VALUE_HEADS)
            model.vector(f"{block}.ssm_a", -1.5, -0.2, DELTA_VALUE_HEADS)
            model.matrix(f"{block}.ssm_ba", 2 * DELTA_VALUE_HEADS, WIDTH, gain=1)
            model.norm(f"{block}.ssm_norm", DELTA_STATE)
            model.matrix(f"{block}.ssm_out", WIDTH, values, gain=1.5)
        model.norm(f"{block}.post_attention_norm")
        model.matrix(f"{block}.ffn_gate_inp", EXPERTS, WIDTH, gain=2)
        add_gated_feed_forward(model, block, "_exps", EXPERT_FEED_FORWARD, EXPERTS)
        model.matrix(f"{block}.ffn_gate_inp_shexp", WIDTH, gain=1)
        add_gated_feed_forward(model, block, "_shexp", EXPERT_FEED_FORWARD)


def add_head(model: RandomModel, block: str):
    """What a head for multi-token prediction has besides its layer. The layers of these models add little to the
    embeddings, and the head goes on with the embedding of the last token: so it is right quite often, and often not."""
    model.fixed(f"{block}.nextn.eh_proj", numpy.hstack([numpy.eye(WIDTH), 0.02 * numpy.eye(WIDTH)]))
    model.norm(f"{block}.nextn.enorm")
    model.norm(f"{block}.nextn.hnorm")


def add_weak_feed_forward(model: RandomModel, block: str):
    model.matrix(f"{block}.ffn_gate", FEED_FORWARD, WIDTH, gain=1)
    model.matrix(f"{block}.ffn_up", FEED_FORWARD, WIDTH, gain=1)
    model.matrix(f"{block}.ffn_down", WIDTH, FEED_FORWARD, gain=0.1)


def add_weak_attention(model: RandomModel, block: str, query_parts: int = 1):
    model.norm(f"{block}.attn_norm")
    model.matrix(f"{block}.attn_q", query_parts * HEADS * HEAD, WIDTH, gain=2)
    model.matrix(f"{block}.attn_k", KV_HEADS * HEAD, WIDTH, gain=2)
    model.matrix(f"{block}.attn_v", KV_HEADS * HEAD, WIDTH, gain=1)
    model.matrix(f"{block}.attn_output", WIDTH, HEADS * HEAD, gain=0.1)
    model.norm(f"{block}.attn_q_norm", HEAD)
    model.norm(f"{block}.attn_k_norm", HEAD)


def add_hy_v3(model: RandomModel):
    layers = 3
    model.set(
        {
            "block_count": layers + 1,
            "nextn_predict_layers": 1,
            "feed_forward_length": FEED_FORWARD,
            "expert_feed_forward_length": FEED_FORWARD,  # llama.cpp wants to know, though there are no experts
            "attention.head_count": HEADS,
            "attention.head_count_kv": KV_HEADS,
            "attention.key_length": HEAD,
            "attention.value_length": HEAD,
            "attention.layer_norm_rms_epsilon": EPSILON,
            "rope.dimension_count": HEAD,
        }
    )
    for layer in range(layers + 1):
        block = f"blk.{layer}"
        add_weak_attention(model, block)
        model.norm(f"{block}.ffn_norm")
        add_weak_feed_forward(model, block)
    add_head(model, f"blk.{layers}")


def add_qwen35(model: RandomModel):
    layers, interval = 4, 4  # the last one is full attention
    keys, values = DELTA_KEY_HEADS * DELTA_STATE, DELTA_VALUE_HEADS * DELTA_STATE
    model.set(
        {
            "block_count": layers + 1,
            "nextn_predict_layers": 1,
            "full_attention_interval": interval,
            "feed_forward_length": FEED_FORWARD,
            "attention.head_count": HEADS,
            "attention.head_count_kv": KV_HEADS,
            "attention.key_length": HEAD,
            "attention.value_length": HEAD,
            "attention.layer_norm_rms_epsilon": EPSILON,
            "rope.dimension_count": HEAD // 4,
            "rope.dimension_sections": [4, 2, 2, 0],
            "ssm.conv_kernel": CONVOLVED,
            "ssm.inner_size": values,
            "ssm.state_size": DELTA_STATE,
            "ssm.time_step_rank": DELTA_VALUE_HEADS,
            "ssm.group_count": DELTA_KEY_HEADS,
        }
    )
    for layer in range(layers + 1):
        block = f"blk.{layer}"
        if layer == layers or (layer + 1) % interval == 0:
            add_weak_attention(model, block, query_parts=2)  # the second one is a gate
        else:
            model.norm(f"{block}.attn_norm")
            model.matrix(f"{block}.attn_qkv", 2 * keys + values, WIDTH, gain=2)
            model.matrix(f"{block}.attn_gate", values, WIDTH, gain=2)
            model.vector(f"{block}.ssm_conv1d.weight", -0.8, 0.8, 2 * keys + values, CONVOLVED)
            model.vector(f"{block}.ssm_dt.bias", -4, -1.5, DELTA_VALUE_HEADS)
            model.vector(f"{block}.ssm_a", -1.5, -0.2, DELTA_VALUE_HEADS)
            model.matrix(f"{block}.ssm_beta", DELTA_VALUE_HEADS, WIDTH, gain=1)
            model.matrix(f"{block}.ssm_alpha", DELTA_VALUE_HEADS, WIDTH, gain=1)
            model.norm(f"{block}.ssm_norm", DELTA_STATE)
            model.matrix(f"{block}.ssm_out", WIDTH, values, gain=0.1)
        model.norm(f"{block}.post_attention_norm")
        add_weak_feed_forward(model, block)
    add_head(model, f"blk.{layers}")


def add_rwkv7(model: RandomModel):
    layers = 3
    model.set(
        {
            "block_count": layers,
            "feed_forward_length": FEED_FORWARD,
            "attention.head_count": 0,
            "attention.layer_norm_epsilon": EPSILON,
            "attention.decay_lora_rank": RANK,
            "attention.iclr_lora_rank": RANK,
            "attention.value_residual_mix_lora_rank": RANK,
            "attention.gate_lora_rank": RANK,
            "wkv.head_size": WIDTH,  # one head
            "token_shift_count": 2,
        }
    )
    add_norm_with_bias(model, "token_embd_norm")
    model.vector("output_norm.bias", -0.1, 0.1, WIDTH)
    for layer in range(layers):
        block = f"blk.{layer}"
        for name in ("attn_norm", "attn_norm_2", "time_mix_ln"):
            add_norm_with_bias(model, f"{block}.{name}")
        for part, low, high in (("w", -6, -2), ("a", -1, 1), ("v", -1, 1)):
            model.vector(f"{block}.time_mix_{part}0.weight", low, high, WIDTH)
            model.matrix(f"{block}.time_mix_{part}1", RANK, WIDTH, gain=1)
            model.matrix(f"{block}.time_mix_{part}2", WIDTH, RANK, gain=1)
        model.matrix(f"{block}.time_mix_g1", RANK, WIDTH, gain=2)
        model.matrix(f"{block}.time_mix_g2", WIDTH, RANK, gain=2)
        model.vector(f"{block}.time_mix_lerp_fused.weight", 0, 1, 6, 1, 1, WIDTH)
        model.vector(f"{block}.time_mix_k_k.weight", 0.5, 1.5, WIDTH)
        model.vector(f"{block}.time_mix_k_a.weight", 0.5, 1, WIDTH)
        model.vector(f"{block}.time_mix_r_k.weight", -0.1, 0.1, WIDTH)
        model.matrix(f"{block}.time_mix_key", WIDTH, WIDTH, gain=1)
        model.matrix(f"{block}.time_mix_value", WIDTH, WIDTH, gain=1)
        model.matrix(f"{block}.time_mix_receptance", WIDTH, WIDTH, gain=1)
        model.matrix(f"{block}.time_mix_output", WIDTH, WIDTH, gain=1.5)
        model.vector(f"{block}.channel_mix_lerp_k.weight", 0, 1, WIDTH)
        model.matrix(f"{block}.channel_mix_key", FEED_FORWARD, WIDTH, gain=1.5)
        model.matrix(f"{block}.channel_mix_value", WIDTH, FEED_FORWARD, gain=0.4)


MANY_EXPERTS, MANY_USED = 16, 3  # of the mixtures without a state


def set_mixture(model: RandomModel, layers: int, head: int, kv_heads: int):
    model.set(
        {
            "block_count": layers,
            "feed_forward_length": FEED_FORWARD,
            "attention.head_count": HEADS,
            "attention.head_count_kv": kv_heads,
            "attention.layer_norm_rms_epsilon": EPSILON,
            "rope.dimension_count": head,
            "expert_count": MANY_EXPERTS,
            "expert_used_count": MANY_USED,
            "expert_feed_forward_length": EXPERT_FEED_FORWARD,
        }
    )


def add_experts(model: RandomModel, block: str, kind: GGMLQuantizationType):
    model.matrix(f"{block}.ffn_gate_inp", MANY_EXPERTS, WIDTH, gain=2, kind=GGMLQuantizationType.F32)
    add_gated_feed_forward(model, block, "_exps", EXPERT_FEED_FORWARD, MANY_EXPERTS, kind=kind)


def add_qwen3moe(model: RandomModel):
    layers = 3
    set_mixture(model, layers, HEAD, KV_HEADS)
    model.set({"attention.key_length": HEAD, "attention.value_length": HEAD})
    for layer in range(layers):
        block = f"blk.{layer}"
        add_attention(model, block)
        model.norm(f"{block}.attn_q_norm", HEAD)
        model.norm(f"{block}.attn_k_norm", HEAD)
        model.norm(f"{block}.ffn_norm")
        add_experts(model, block, GGMLQuantizationType.Q5_1)


def add_deepseek2(model: RandomModel):
    """Latent attention with low-rank queries, a dense first layer, a shared expert."""
    layers, rope, latent = 3, 32, 64
    set_mixture(model, layers, rope, 1)
    model.set(
        {
            "leading_dense_block_count": 1,
            "expert_shared_count": 1,
            "attention.q_lora_rank": RANK,
            "attention.kv_lora_rank": latent,
            "attention.key_length": latent + rope,
            "attention.value_length": latent,
            "attention.key_length_mla": HEAD + rope,
            "attention.value_length_mla": HEAD,
        }
    )
    for layer in range(layers):
        block = f"blk.{layer}"
        model.norm(f"{block}.attn_norm")
        model.norm(f"{block}.attn_q_a_norm", RANK)
        model.norm(f"{block}.attn_kv_a_norm", latent)
        model.matrix(f"{block}.attn_q_a", RANK, WIDTH, gain=2)
        model.matrix(f"{block}.attn_q_b", HEADS * (HEAD + rope), RANK, gain=2)
        model.matrix(f"{block}.attn_kv_a_mqa", latent + rope, WIDTH, gain=2)
        model.matrix(f"{block}.attn_k_b", HEADS, latent, HEAD, gain=1)
        model.matrix(f"{block}.attn_v_b", HEADS, HEAD, latent, gain=1)
        model.matrix(f"{block}.attn_output", WIDTH, HEADS * HEAD, gain=1.5)
        model.norm(f"{block}.ffn_norm")
        if layer == 0:
            add_gated_feed_forward(model, block, "", FEED_FORWARD)
        else:
            add_experts(model, block, GGMLQuantizationType.Q5_0)
            add_gated_feed_forward(model, block, "_shexp", EXPERT_FEED_FORWARD)


def add_gpt_oss(model: RandomModel):
    """Sinks, biases everywhere, every second layer with a short window, experts in MXFP4."""
    layers = 4
    set_mixture(model, layers, HEAD, KV_HEADS)
    model.set({"attention.key_length": HEAD, "attention.value_length": HEAD, "attention.sliding_window": 128})
    for layer in range(layers):
        block = f"blk.{layer}"
        add_attention(model, block)
        for name, size in (("q", HEADS * HEAD), ("k", KV_HEADS * HEAD), ("v", KV_HEADS * HEAD), ("output", WIDTH)):
            model.vector(f"{block}.attn_{name}.bias", -0.1, 0.1, size)
        model.vector(f"{block}.attn_sinks.weight", -1, 1, HEADS)
        model.norm(f"{block}.post_attention_norm")
        add_experts(model, block, GGMLQuantizationType.MXFP4)
        model.vector(f"{block}.ffn_gate_inp.bias", -0.1, 0.1, MANY_EXPERTS)
        for name, size in (("gate", EXPERT_FEED_FORWARD), ("up", EXPERT_FEED_FORWARD), ("down", WIDTH)):
            model.vector(f"{block}.ffn_{name}_exps.bias", -0.1, 0.1, MANY_EXPERTS, size)


def add_norm_with_bias(model: RandomModel, name: str):
    model.norm(name)
    model.vector(f"{name}.bias", -0.1, 0.1, WIDTH)


LAYERS: dict[str, tuple[str, Callable[[RandomModel], None]]] = {  # and the name that llama.cpp has for it
    "mamba": ("mamba", add_mamba),
    "mamba2-hybrid": ("granitehybrid", add_granite_hybrid),
    "nemotron-h": ("nemotron_h", add_nemotron_h),
    "gated-delta-net": ("qwen3next", add_qwen3next),
    "rwkv7": ("rwkv7", add_rwkv7),
}
ARCHITECTURES: tuple[str, ...] = tuple(LAYERS)
MIXTURES: dict[str, tuple[str, Callable[[RandomModel], None]]] = {
    "qwen3moe": ("qwen3moe", add_qwen3moe),
    "deepseek2": ("deepseek2", add_deepseek2),
    "gpt-oss": ("gpt-oss", add_gpt_oss),
}
WITH_HEADS: dict[str, tuple[str, Callable[[RandomModel], None]]] = {
    "dense": ("hy_v3", add_hy_v3),
    "hybrid": ("qwen35", add_qwen35),
}


def write_random_model(architecture: str, path: Path, seed: int = 1) -> None:
    name, add_layers = (LAYERS | MIXTURES | WITH_HEADS)[architecture]
    model = RandomModel(name, path, seed)
    model.set({"context_length": CONTEXT, "embedding_length": WIDTH})
    model.embeddings()
    add_layers(model)
    model.output()
    model.write()


if __name__ == "__main__":
    for architecture in LAYERS | MIXTURES | WITH_HEADS:
        path = Path(sys.argv[1]) / f"{architecture}.gguf"
        write_random_model(architecture, path)
        print(f"{path}: {path.stat().st_size / 1e6:.1f} MB")
