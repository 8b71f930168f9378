# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Generation on fake devices: right on each mesh and in each format, exact in bytes and messages; and its lies."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import pytest
from ml_collections import ConfigDict
from thin import thin

from jaxbench import config as config_lib
from jaxbench import discovery, levers
from jaxbench.core.schema import PointRecord, Verdict
from jaxbench.errors import UserError
from jaxbench.features.decode import recipe, run_points, settle
from jaxbench.measure.point import Point
from jaxbench.parallel import generation
from jaxbench.parallel.generation import Decoder
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
    sent = {each.kind: (each.count, each.elements) for each in record.passport.collectives if each.group > 1}
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
    ("weights", "cache", "layout", "model"),
    thin(
        [
            ("int8", "int8", "heads", ""),
            ("fp8", "bfloat16", "positions", "llama"),
            ("bfloat16", "fp8", "split", ""),
            ("float32", "int8", "split", "llama"),
            ("float32", "float32", "positions", ""),
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
    points, left_out = run_points.points(settings, MACHINE, "decode") or ([], [])
    steps = [point.point for point in points if not point.explains]
    assert "tensor/strong/8/batch=1" in steps and "data/strong/8/batch=8" in steps
    assert "data/strong/8/batch=1" not in steps and "both/strong/2/batch=8" not in steps
    assert any("a batch of 1 does not divide over 8" in each for each in left_out)
    parts = {point.point.rpartition("/")[2] for point in points if point.explains == "tensor/strong/8/batch=8"}
    assert parts == {"scan", "local", "weights", "products", "messages", "tiny"}
    assert run_points.points(settings, MACHINE, "") is None


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
