# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Generation on fake devices: right on each mesh and in each format, exact in bytes and messages; and its lies."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from ml_collections import ConfigDict
from thin import thin

from jaxbench import config as config_lib
from jaxbench import discovery, levers
from jaxbench.core.point import Point
from jaxbench.core.schema import PointRecord, Verdict
from jaxbench.errors import Unsupported, UserError
from jaxbench.features.decode import recipe, settle
from jaxbench.machine.cores import last_level_cache_bytes
from jaxbench.parallel import generation
from jaxbench.parallel.generation import Decoder
from jaxbench.sweep import generation as generation_points
from jaxbench.workloads import generation as workloads
from jaxbench.workloads.models import decoder

BATCH, PLACES, LAYERS, HEADS, WIDTH = 4, 16, 2, 4, 8  # requests, cache, blocks, heads and their width
MACHINE = {"platform": "cpu", "device_kind": "cpu", "devices": 8, "cores": 8, "memory_bytes": 2**33}


def composed(**changes: object) -> ConfigDict:
    config = config_lib.compose("decode", discovery.load_experiment("decode"), discovery.load_preset("smoke"))
    with config.unlocked():
        config.measure.block_s = 0.001
        config.update_from_flattened_dict(changes)
    return config


def prepared(
    strategy: str, devices: int, part: str = "step", *, batch: int = BATCH, model: str = "", **changed: str
) -> tuple[recipe.GenerationBench, PointRecord]:
    """(the bench, the record of a point that it has prepared)."""
    config = composed(**({"model.gated": 1, "model.rms": 1, "model.kv_heads": 2} if model == "llama" else {}))
    bench = recipe.bench(config_lib.plain(config), "decode", jax.devices(), "session0/here")
    given = {lever.name: lever.default for lever in levers.OF_GENERATION.values()}
    formats = {"weights": "float32", "cache": "float32"}
    point = Point(
        point=f"{strategy}/strong/{devices}" + ("" if part == "step" else f"/{part}"),
        strategy=strategy,
        scaling="strong",
        devices=devices,
        global_batch=batch,
        oversubscribed=False,
        levers={**given, **formats, "part": part, **changed},
        explains="" if part == "step" else f"{strategy}/strong/{devices}",
        platform="cpu",
    )
    return bench, bench.prepare(point.to_json(), paced=False)


def check(checks: tuple[Verdict, ...], name: str) -> Verdict:
    return next(each for each in checks if each.name == name)


def failed(checks: tuple[Verdict, ...]) -> dict[str, str]:
    return {each.name: each.reason for each in checks if not each.ok}


@pytest.mark.parametrize(
    ("strategy", "devices"),
    thin([("tensor", 2), ("data", 4), ("both", 8), ("tensor", 1), ("tensor", 4), ("both", 4)], 3),
)
def test_every_mesh_generates_what_one_device_does(strategy: str, devices: int) -> None:
    bench, record = prepared(strategy, devices)
    assert not failed(record.checks)
    sizes = generation.mesh_sizes(strategy, devices)
    requests, heads = BATCH // sizes["data"], HEADS // sizes["tensor"]
    assert check(record.checks, "cache").value == 2 * LAYERS * heads * WIDTH * PLACES * 4 * requests
    sent = {each.kind: (each.count, each.elements) for each in record.compile_report.collectives if each.group > 1}
    summed = {"all-reduce": (2 * LAYERS + 1, (2 * LAYERS + 1) * requests * HEADS * WIDTH)}
    best = {"all-gather": (1, 2 * requests * sizes["tensor"])}
    assert sent == (summed | best if sizes["tensor"] > 1 else {})
    after = bench.round(record.point, 0, steps=5)
    assert not failed(after.checks)
    assert {"position", "timed state"} <= {each.name for each in after.checks}


@pytest.mark.parametrize("part", thin(["scan", "prefill", "local", "weights", "products", "messages", "tiny"], 3))
def test_parts_of_a_step_are_checked(part: str) -> None:
    bench, record = prepared("tensor", 2, part)
    assert not failed(record.checks)
    assert not failed(bench.round(record.point, 0, steps=2).checks)


@pytest.mark.parametrize(
    ("batch", "platform", "tokens"), [(8, "cpu", 8), (64, "cpu", 2), (64, "gpu", 8)], ids=["short", "long", "gpu"]
)
def test_a_scan_of_tokens_that_take_a_cpu_a_second_is_short(batch: int, platform: str, tokens: int) -> None:
    config = composed(**{"model.layers": 12, "model.width": 768, "model.heads": 12, "model.vocab": 50257})
    config.context, config.input, config.output = 1024, 0, 32
    workload = workloads.workload(config)
    for part in ("scan", "local", "messages"):
        assert generation.tokens_of(workload, part, batch, platform) == tokens
    assert generation.tokens_of(workload, "step", batch, platform) == 1
    config.output = 4
    assert generation.tokens_of(workloads.workload(config), "scan", batch, platform) == min(4, tokens)


@pytest.mark.parametrize("devices", [1, 2])
def test_the_triad_moves_its_three_arrays_and_none_fits_in_a_cache(devices: int) -> None:
    on = Decoder.on(workloads.workload(composed()), jax.devices()[:devices], {"data": devices, "tensor": 1}, devices)
    program = generation.triad(on)
    compiled = program.step.lower(*program.avals()).compile()
    assert "copy(" not in compiled.as_text(), "memory that the count of bytes leaves out"
    held = 2 * devices * 4 * generation.triad_numbers(on)
    assert held > 3.9 * (last_level_cache_bytes() or 0)
    assert devices * generation.triad_bytes(on) == 1.5 * held


@pytest.mark.parametrize(
    ("weights", "cache", "layout", "model"),
    thin(
        [
            ("int8", "int8", "heads", ""),
            ("fp8", "bfloat16", "positions", "llama"),
            ("bfloat16", "fp8", "split", ""),
            ("float32", "int8", "split", "llama"),
            ("float32", "float32", "positions", ""),
            ("bfloat16", "bfloat16", "pages", "llama"),
            ("float32", "int8", "pages", ""),
        ],
        2,
    ),
)
def test_every_format_and_layout(weights: str, cache: str, layout: str, model: str) -> None:
    _, record = prepared("tensor", 2, model=model, weights=weights, cache=cache, cache_layout=layout)
    assert not failed(record.checks)
    wide = {"float32": 4, "bfloat16": 2, "int8": 1, "fp8": 1}[cache] * WIDTH + (4 if cache == "int8" else 0)
    heads = (2 if model else HEADS) // 2
    assert check(record.checks, "cache").value == 2 * LAYERS * heads * wide * PLACES * BATCH


@pytest.mark.parametrize(("queries", "places"), [(4, 48), (16, 256)])  # of each of two heads of keys: 2 and 8
def test_paged_attention_is_that_of_xla(queries: int, places: int) -> None:
    from jax.experimental.pallas import tpu as pallas

    random = np.random.default_rng(0)
    q = random.normal(size=(3, 1, queries, 128)).astype(np.float32)
    k, v = random.normal(size=(2, 3, places, 2, 128)).astype(np.float32)
    plain = decoder.Form(dtype=jnp.float32, cache="float32")
    paged = dataclasses.replace(plain, layout="pages", attention="paged")
    for known in (1, places // 3, places):
        at = jnp.int32(known)
        with pallas.force_tpu_interpret_mode():
            found = decoder.attended(q, k, v, at, paged)
        # The kernel multiplies in bfloat16, so a place more or less would show.
        np.testing.assert_allclose(found, decoder.attended(q, k, v, at, plain), atol=2e-2)


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"layout": "heads"}, "not bfloat16 in the layout heads: use --config.lever.cache_layout=pages"),
        ({"cache": "int8"}, "not int8 in the layout pages"),
        ({"weights": "float32"}, "not float32 in the layout pages"),
        ({"shape": workloads.PRESETS["small"]}, "not heads of 64 and 96 places"),
        ({"lengths": workloads.Lengths(64, 32, 97)}, "not heads of 128 and 97 places"),
    ],
)
def test_what_the_paged_kernel_does_not_read_is_refused(changed: dict[str, Any], says: str) -> None:
    right = workloads.GenerationWorkload(
        name="decode",
        shape=workloads.PRESETS["8b"],
        lengths=workloads.Lengths(64, 32, 96),
        layout="pages",
        attention="pallas",
    )
    recipe._require_kernel(right, "tpu")
    with pytest.raises(Unsupported, match=says):
        recipe._require_kernel(dataclasses.replace(right, **changed), "tpu")


# A program with each of these errors generates fluently.


def test_a_cache_that_is_not_donated_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generation, "step", functools.partial(generation.step, donate=False))
    _, record = prepared("data", 1)
    assert [*failed(record.checks)] == ["donated"]
    assert "NOT all 32,768 of the cache" in failed(record.checks)["donated"]


def test_a_position_that_is_off_by_one_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    embedded = decoder.embedded
    late = lambda weights, tokens, at, form: embedded(weights, tokens, jnp.maximum(at - 1, 0), form)  # noqa: E731
    monkeypatch.setattr(decoder, "embedded", late)
    _, record = prepared("data", 1)
    assert "NOT within" in failed(record.checks)["logits"]


@pytest.mark.parametrize("off", [-1, 1])
def test_attention_to_one_place_more_or_less_is_caught(off: int, monkeypatch: pytest.MonkeyPatch) -> None:
    attended = decoder.attended
    shifted = lambda q, k, v, places, form: attended(q, k, v, jnp.maximum(places + off, 1), form)  # noqa: E731
    monkeypatch.setattr(decoder, "attended", shifted)
    _, record = prepared("data", 1)
    assert "NOT within" in failed(record.checks)["logits"]


def test_a_cache_that_requests_share_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    layer_of = decoder.layer_of

    def first(cache: decoder.Cache, number: int, form: decoder.Form) -> tuple[jax.Array, jax.Array]:
        k, v = layer_of(cache, number, form)
        return jnp.broadcast_to(k[:1], k.shape), jnp.broadcast_to(v[:1], v.shape)

    monkeypatch.setattr(decoder, "layer_of", first)
    _, record = prepared("data", 1)
    assert "NOT within" in failed(record.checks)["logits"]
    assert "request 0" not in failed(record.checks)["logits"]


def test_a_cache_that_is_written_for_one_request_only_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    written = decoder.written

    def shared(
        cache: decoder.Cache, number: int, at: jax.Array, k: jax.Array, v: jax.Array, form: decoder.Form
    ) -> decoder.Cache:
        return written(cache, number, at, jnp.broadcast_to(k[:1], k.shape), jnp.broadcast_to(v[:1], v.shape), form)

    monkeypatch.setattr(decoder, "written", shared)
    _, record = prepared("data", 1)
    assert "NOT within" in failed(record.checks)["logits"]


def test_a_text_that_overflows_its_cache_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    token = Decoder.token

    def endless(self: Decoder, state: generation.TrainState, form: decoder.Form) -> generation.TrainState:
        after = token(self, state, form)
        made = dataclasses.replace(after.opt_state, position=state.opt_state.position + 1)
        return dataclasses.replace(after, opt_state=made)

    monkeypatch.setattr(Decoder, "token", endless)
    bench, record = prepared("data", 1)
    assert not failed(record.checks)  # up to the last place all is right
    assert "beyond the cache" in failed(bench.round(record.point, 0, steps=8).checks)["position"]


def test_a_sum_that_is_left_out_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoder, "summed", lambda x, form: x)
    _, record = prepared("tensor", 2)
    assert {"logits", "collectives"} <= {*failed(record.checks)}


@pytest.mark.parametrize(
    ("context", "prompt", "output", "expected"),
    [(0, 0, 0, (96, 32, 128)), (0, 1024, 128, (1024, 128, 1152)), (1024, 0, 128, (896, 128, 1024))],
)
def test_lengths_follow_from_each_other(context: int, prompt: int, output: int, expected: tuple[int, int, int]) -> None:
    config = ConfigDict({"context": context, "input": prompt, "output": output})
    assert dataclasses.astuple(workloads.lengths_of(config)) == expected


def test_a_context_that_is_too_short_is_refused() -> None:
    config = ConfigDict({"context": 1024, "input": 1000, "output": 128})
    with pytest.raises(UserError, match="overflows: an input of 1000 and an output of 128 tokens need .*=1128"):
        workloads.lengths_of(config)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"lever.remat": "block"}, "lever.remat=block changes a training"),
        ({"scaling": "weak"}, "scaling=weak: a batch of requests"),
        ({"model.preset": "large8"}, "preset=large8 is unknown: did you mean 'large'"),
        ({"context": 20, "input": 18}, "context=20 overflows"),
        ({"lever.weights": "int4"}, "lever.weights=int4 is unknown"),
    ],
)
def test_settings_without_effect_are_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        settle.settle(composed(**changes), "decode")


def test_the_plan_leaves_out_what_does_not_divide() -> None:
    config = composed(**{"lever.batch": "1,8", "mesh.devices": "1,2,8", "strategy": "all", "explain": "on"})
    settings = config_lib.parse(config, list(generation.STRATEGIES), list(generation.STRATEGIES))
    points, left_out = generation_points.points(settings, MACHINE)
    steps = [point.point for point in points if not point.explains]
    assert "tensor/strong/8/batch=1" in steps and "data/strong/8/batch=8" in steps
    assert "data/strong/8/batch=1" not in steps and "both/strong/2/batch=8" not in steps
    assert any("a batch of 1 does not divide over 8" in each for each in left_out)
    parts = {point.point.rpartition("/")[2] for point in points if point.explains == "tensor/strong/8/batch=8"}
    assert parts == {"scan", "local", "weights", "products", "messages", "tiny"}


def test_parameters_are_those_of_the_weights() -> None:
    for preset in ("tiny", "small", "8b"):
        shape = workloads.PRESETS[preset]
        weights = jax.eval_shape(
            lambda seed, shape=shape: (
                decoder.init_ends(shape, "float32", seed),
                [decoder.init_block(shape, "float32", seed) for _ in range(shape.layers)],
            ),
            jnp.uint32(0),
        )
        padding = (shape.rows - shape.vocab) * shape.width
        assert workloads.parameters(shape) == sum(x.size for x in jax.tree.leaves(weights)) - padding


def test_an_attention_that_the_platform_lacks_is_named() -> None:
    bench: Callable[[], object] = lambda: prepared("data", 1, attention="cudnn")  # noqa: E731
    with pytest.raises(Exception, match="build") as raised:
        bench()
    assert "attention=cudnn is not possible on a cpu: use xla" in str(raised.value.__cause__)
