# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The time of a token on hardware that is absent: a bound from peaks, a forecast, and its band. Works without jax.

    bound    = B S kv / (n BW) + max(2 B P / (n F), W / (n BW))
    forecast = the same at the share of the bandwidth that programs reach
               + (2 L + 1) (alpha + 2 (n-1)/n B d b / beta)
               + L starts

B requests, S places, kv bytes of a place, n devices of tensor parallelism, P parameters of products and W their bytes,
F and BW peaks of a device, L layers, d width, b bytes of an activation. docs/metrics, Forecasts of generation, has the
published rows that the constants are fitted to.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from jaxbench.catalog import hardware
from jaxbench.catalog.hardware import Peak
from jaxbench.errors import UserError

# Of the published rows of gpt-fast on A100 (published/decode_gpt_fast.csv): a plain program on one GPU reads bfloat16
# weights at 1,410 of 2,039 GB/s, and an all-reduce of a few kB takes 23 microseconds.
GPU_SHARE, GPU_ALPHA_S, GPU_START_S = 0.69, 23e-6, 10e-6
PCIE_ALPHA_S = 42e-6  # catalog/pcie.csv
# Narrow weights are read at a smaller share, because each number is converted: int8 at 1,069 of 1,397 GB/s.
SLOWER = {"float32": 1.0, "bfloat16": 1.0, "int8": 0.75, "fp8": 1.0, "int4": 0.61}
# Serving engines on TPUs take 1.6 to 4.5 times the bound (published/decode_sglang_jax.csv), large batches 2.2 to 2.5.
TPU_TIMES, TPU_ALPHA_S = 2.2, 1e-6
# Measured over forecast: of plain programs on GPUs, nine rows in ten; of serving engines on TPUs, all eight.
BANDS = {"gpu": (0.86, 1.18), "tpu": (0.7, 2.05)}
PREFILL_SHARE = 0.4  # of the peak: the share that the scaling book assumes for prompts
BYTES = {"float32": 4.0, "bfloat16": 2.0, "int8": 1.0, "fp8": 1.0, "int4": 0.66}  # int4 with its groups of 32
RESERVED = 0.08  # of the memory: the runtime's, and activations


@dataclass(frozen=True, kw_only=True)
class Model:
    """What the time of a token depends on.

    Attributes:
      products: parameters that a token multiplies with. stored: all parameters, with the embedding.
      place_bytes: of a place of the cache of one request. activation_bytes: of one number.
    """

    products: float
    stored: float
    layers: int
    width: int
    kv_heads: int
    place_bytes: float
    weights: str
    activation_bytes: float = 2.0

    @property
    def weight_bytes(self) -> float:
        return self.products * BYTES[self.weights]


@dataclass(frozen=True, kw_only=True)
class TokenForecast:
    """Seconds of a token of each request on `devices` devices of tensor parallelism, and bytes of a device.

    Attributes:
      bound_s: no program is faster. low_s, high_s: the band of the forecast `tpot_s`.
      ttft_s: of one prompt.
      fits: whether weights, cache and a reserve fit; memory_bytes: of the device.
    """

    device: str
    devices: int
    batch: int
    context: int
    bound_s: float
    tpot_s: float
    low_s: float
    high_s: float
    ttft_s: float
    weights_s: float
    cache_s: float
    messages_s: float
    starts_s: float
    needed_bytes: float
    memory_bytes: float

    @property
    def fits(self) -> bool:
        return self.needed_bytes <= self.memory_bytes

    @property
    def tokens_per_s(self) -> float:
        """Of all requests."""
        return self.batch / self.tpot_s


def bound_s(model: Model, peak: Peak, devices: int, batch: int, context: int) -> float:
    """Seconds of a token that no program can beat. Raises UserError for a device without rates."""
    bandwidth, flops = _rates(model, peak)
    cache = batch * context * model.place_bytes / (devices * bandwidth)
    return cache + max(2 * batch * model.products / (devices * flops), model.weight_bytes / (devices * bandwidth))


def forecast(
    model: Model, peak: Peak, devices: int, batch: int, context: int, *, prompt: int, link: str = ""
) -> TokenForecast:
    """The forecast of a static batch. prompt: tokens of a prompt. link: within a host: nvlink | pcie | ici.

    Raises UserError for a device without rates, or for heads that the devices cannot share.
    """
    bandwidth, flops = _rates(model, peak)
    if devices > model.kv_heads and devices % model.kv_heads:
        raise UserError(f"{model.kv_heads} heads of keys and values do not divide over {devices} devices: use fewer.")
    least = bound_s(model, peak, devices, batch, context)
    split = min(devices, model.kv_heads)  # more devices than heads keep copies of the cache
    tpu = peak.kind == "tpu"
    share = 1 / TPU_TIMES if tpu else GPU_SHARE
    cache_s = batch * context * model.place_bytes / (split * bandwidth * share)
    reading = model.weight_bytes / (devices * bandwidth * share * SLOWER[model.weights])
    computing = 2 * batch * model.products / (devices * flops * (share if tpu else 0.7))
    messages_s = _messages_s(model, peak, devices, batch, link)
    starts_s = 0.0 if tpu else model.layers * GPU_START_S
    tpot = cache_s + max(reading, computing) + messages_s + starts_s
    low, high = BANDS[peak.kind]
    needed = model.stored * BYTES[model.weights] / devices + batch * context * model.place_bytes / split
    memory = float(peak.memory_bytes or 0)
    prompts = 2 * model.products * prompt / (devices * flops * PREFILL_SHARE)
    return TokenForecast(
        device=peak.name,
        devices=devices,
        batch=batch,
        context=context,
        bound_s=least,
        tpot_s=tpot,
        low_s=max(low * tpot, least),
        high_s=high * tpot,
        ttft_s=prompts + messages_s * max(1.0, prompt / 256),
        weights_s=max(reading, computing),
        cache_s=cache_s,
        messages_s=messages_s,
        starts_s=starts_s,
        needed_bytes=needed,
        memory_bytes=(1 - RESERVED) * memory if memory else math.inf,
    )


def _rates(model: Model, peak: Peak) -> tuple[float, float]:
    """(bytes per second, FLOP/s) of a device."""
    rate = peak.rate("float8_e4m3fn") if model.weights == "fp8" else None
    rate = rate or peak.rate("bfloat16") or peak.rate("float16") or peak.rate("float32")
    if rate is None or not peak.memory_bytes_per_s:
        raise UserError(f"the catalogue has no bandwidth or no rate of {peak.name}: use h100:8, for example.")
    return peak.memory_bytes_per_s, rate.flop_per_s


def _messages_s(model: Model, peak: Peak, devices: int, batch: int, link: str) -> float:
    """Seconds of the all-reduces of a token."""
    if devices == 1:
        return 0.0
    size = batch * model.width * model.activation_bytes
    way = {"ici": "ici", "nvlink": "nvlink"}.get(link or ("ici" if peak.kind == "tpu" else "nvlink"))
    known = hardware.link(peak.name, way, "all-reduce") or hardware.link(peak.name, way) if way else None
    if way == "ici":
        alpha = 2 * math.log2(devices) * TPU_ALPHA_S
        beta = 2 * known.bytes_per_s if known is not None else 1e11
    elif known is not None:
        alpha, beta = GPU_ALPHA_S, known.bytes_per_s
    else:
        alpha, beta = PCIE_ALPHA_S, 2e10
    return (2 * model.layers + 1) * (alpha + 2 * (devices - 1) / devices * size / beta)
