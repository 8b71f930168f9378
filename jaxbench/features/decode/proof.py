# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Checks of generation: logits against the full forward pass, the cache in bytes, what is sent, and the position.

The reference is `models.gpt.GPT`, which has no cache, in float32 on one device with the same weights. Requests have
different texts, as far as the work allows. Places of the cache that are not yet written hold other values, so a step
that reads them is wrong.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P
from ml_collections import ConfigDict

from jaxbench.core.program import TrainState
from jaxbench.core.schema import Collective, CompileReport, Verdict
from jaxbench.digits import counted
from jaxbench.errors import present
from jaxbench.measure import memory
from jaxbench.measure.compile_report import CompiledStep
from jaxbench.measure.recipe import BuiltStep
from jaxbench.parallel import axes, multihost
from jaxbench.parallel.generation import SCAN, Decoder, Generated
from jaxbench.workloads.adapters import from_nnx
from jaxbench.workloads.generation import Lengths
from jaxbench.workloads.models import decoder, gpt
from jaxbench.workloads.models.decoder import Cache, Form, Weights

# The relative L2 distance that the logits of a request may have in two correct programs. A narrow format of the weights
# is the same in the reference; that of the activations and of the cache is not.
TOLERANCES = {"float32": 2e-4, "bfloat16": 1e-1, "int8": 1e-1, "fp8": 3e-1}
TEXT_TOKENS = 4096  # of all texts of the reference together
LEAST_TEXTS, MOST_TEXTS = 4, 16
CHAINED = 2  # steps at each checked place: the second one reads what the first one wrote


@dataclass(frozen=True)
class Reference:
    """The full forward pass of some texts on one device.

    tokens: (texts, S) int32. logits: by position, (texts, V) float32. k, v: (L, texts, K, S, H) float32.
    """

    tokens: np.ndarray
    logits: dict[int, np.ndarray]
    k: np.ndarray
    v: np.ndarray


def places(lengths: Lengths) -> tuple[int, ...]:
    """Where the checked steps begin: at the first place, a middle one, and so that they end with the last one."""
    return 0, lengths.context // 2, lengths.context - CHAINED


def reference(on: Decoder, device: jax.Device, key: jax.Array) -> Reference:
    """Computes the reference for the weights of a program.

    Keys and values come from a prompt of the whole text. If they were wrong, the logits that are computed from them
    would differ from those of the forward pass, which does not use them.
    """
    shape, lengths = on.workload.shape, on.workload.lengths
    texts = min(MOST_TEXTS, max(LEAST_TEXTS, TEXT_TOKENS // lengths.context))
    tokens = np.random.default_rng(7).integers(0, shape.vocab, (texts, lengths.context), dtype=np.int32)
    wanted = sorted({lengths.input - 1, *(begin + step for begin in places(lengths) for step in range(CHAINED))})
    forward, form = full_forward(on, tuple(wanted)), Form(dtype=jnp.float32, cache="float32")

    def one(weights: Weights, text: jax.Array) -> tuple[jax.Array, Cache]:
        empty = decoder.empty_cache(shape, form, 1, lengths.context, kv_heads=shape.kv_heads or shape.heads)
        cache, _ = decoder.forward(weights, empty, text[None], jnp.int32(0), shape.vocab, form)
        return forward(weights, text), cache

    with alone(device):
        weights = single(on, device).weights(jax.device_put(key, device))
        run = jax.jit(one)
        rows = [jax.device_get(run(weights, jax.device_put(text, device))) for text in tokens]
    logits = {at: np.stack([found[i] for found, _ in rows]) for i, at in enumerate(wanted)}
    k, v = (np.concatenate([getattr(cache, name)[0] for _, cache in rows], 1) for name in ("k", "v"))
    return Reference(tokens, logits, k, v)


def single(on: Decoder, device: jax.Device) -> Decoder:
    """The same on one device."""
    return Decoder.on(on.workload, [device], {"data": 1, "tensor": 1}, on.batch)


def alone(device: jax.Device) -> AbstractContextManager[object]:
    """The context of programs on one device."""
    return jax.set_mesh(axes.mesh_of([device], {"data": 1, "tensor": 1}))


def full_forward(on: Decoder, wanted: Sequence[int]) -> Callable[[Weights, jax.Array], jax.Array]:
    """(weights, text (T,)) -> the logits (wanted, V) of `models.gpt.GPT` at some positions."""
    config = ConfigDict({"preset": "tiny", **vars(on.workload.shape), "attention": "plain"})
    model = from_nnx(partial(gpt.GPT, config))

    def run(weights: Weights, text: jax.Array) -> jax.Array:
        logits = model.predict(decoder.as_gpt(weights, on.workload.shape), {}, text[None])
        return jnp.asarray(logits)[0, jnp.array(wanted)]

    return run


def judge_step(on: Decoder, built: BuiltStep, right: Reference, key: jax.Array) -> tuple[Verdict, ...]:
    """The verdict "logits": forced tokens at the first, a middle and the last place, for each request.

    It runs the compiled step that is timed. As tokens are forced, n devices and one device read the same text.
    """
    texts, vocab = np.arange(on.batch) % len(right.tokens), on.workload.shape.vocab
    distances: dict[int, np.ndarray] = {}
    not_greedy: list[int] = []
    with built.program.context():
        first = built.program.init(key)
        weights, logits = first.params, first.opt_state.logits
        del first  # its cache, before there is another one
        memory.give_back()
        for begin in places(on.workload.lengths):
            counter, kept = (multihost.put(x, NamedSharding(on.mesh, P())) for x in (np.int32(0), np.asarray(key)))
            state = TrainState(counter, weights, {}, None, kept)
            cache = cache_of(on, right, texts, begin)
            for at in range(begin, begin + CHAINED):
                state = _forced(on, state, cache, logits, right.tokens[texts, at], at)
                state, _ = jax.block_until_ready(built.compiled.call(state, {}))
                made: Generated = state.opt_state
                found, cache, logits = multihost.on_host(made.logits)[:, :vocab], made.cache, made.logits
                distances[at] = distance(found, right.logits[at][texts])
                if not np.array_equal(multihost.on_host(made.token), found.argmax(-1)):
                    not_greedy.append(at)
            weights = state.params
            del state, cache, made  # a cache may be most of the memory
            memory.give_back()
    at = max(distances, key=lambda each: distances[each].max())
    worst, request = float(distances[at].max()), int(distances[at].argmax())
    limit = tolerance(on)
    where = f"at positions {', '.join(map(str, sorted(distances)))} of {on.workload.lengths.context}"
    reason = (
        f"the logits of {counted(on.batch, 'request')} {where} are {{}}within {limit:.0e} of the full forward pass on "
        f"one device (relative L2); the largest distance is {worst:.1e}, of request {request} at position {at}"
    )
    verdict = _verdict("logits", worst, limit, reason)
    if not not_greedy:
        return (verdict,)
    reason = f"at position {not_greedy[0]} the next tokens are NOT those with the largest logits"
    return verdict, Verdict(name="greedy", ok=False, reason=reason)


def tolerance(on: Decoder) -> float:
    """For the formats of the activations and of the cache."""
    wide = "float32" if on.form.dtype == jnp.float32 else "bfloat16"
    return max(TOLERANCES[wide], TOLERANCES[on.form.cache])


def cache_of(on: Decoder, right: Reference, texts: np.ndarray, written: int) -> Cache:
    """The cache of all requests with `written` places of their texts. The other places have values of another text."""
    form, others = on.form, np.roll(texts, 1)

    def make(k: jax.Array, v: jax.Array) -> Cache:
        later = jnp.arange(on.workload.lengths.context)[:, None] >= written

        def placed(values: jax.Array) -> jax.Array:
            x = jnp.where(later, 3 * values[:, others] + 1, values[:, texts])  # (L, B, K, S, H)
            if form.layout == "pages":
                return jnp.swapaxes(x, 1, 2)
            return jnp.swapaxes(x, 2, 3) if form.layout == "positions" else x

        def stored(x: jax.Array) -> tuple[tuple[jax.Array, ...], tuple[jax.Array, ...]]:
            arrays = tuple(x) if form.per_layer else (x,)
            if form.cache != "int8":
                return tuple(each.astype(decoder.DTYPES[form.cache]) for each in arrays), ()
            pairs = [decoder.narrowed(each, "int8", (each.ndim - 1,)) for each in arrays]
            return tuple(values for values, _ in pairs), tuple(scale for _, scale in pairs)

        (k_values, k_scale), (v_values, v_scale) = stored(placed(k)), stored(placed(v))
        return Cache(k_values, v_values, k_scale, v_scale)

    made: Cache = jax.jit(make, out_shardings=on.shardings().opt_state.cache)(right.k, right.v)
    return made


def _forced(on: Decoder, state: TrainState, cache: Cache, logits: jax.Array, tokens: np.ndarray, at: int) -> TrainState:
    """The state with this cache, these tokens (B,) and this position."""
    where = on.shardings().opt_state
    token, position = multihost.put((tokens, np.int32(at)), (where.token, where.position), may_alias=False)
    return dataclasses.replace(state, opt_state=Generated(cache, token, position, logits))


def distance(found: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The relative L2 distance of each row; infinity if a number is not finite."""
    with np.errstate(all="ignore"):
        far = np.linalg.norm(found.astype(np.float64) - right, axis=-1) / np.linalg.norm(right, axis=-1)
    return np.where(np.isfinite(far), far, np.inf)


def _verdict(name: str, worst: float, limit: float, reason: str) -> Verdict:
    """A verdict on the worst distance. reason: with a place for "" or "NOT "."""
    ok, value = worst <= limit, worst if math.isfinite(worst) else None
    return Verdict(name=name, ok=ok, reason=reason.format("" if ok else "NOT "), value=value, limit=limit)


def judge_scan(on: Decoder, built: BuiltStep, step: BuiltStep, key: jax.Array) -> Verdict:
    """The verdict "logits" of a scan: the state that as many single steps give, which have been checked."""
    count, (found, at) = on.tokens_of(SCAN), _after(built, key, 1)
    right, place = _after(step, key, count)
    worst = float(distance(found, right).max()) if at == place else math.inf
    reason = f"the logits after a scan of {count} tokens are {{}}within {tolerance(on):.0e} of {count} single steps"
    return _verdict("logits", worst, tolerance(on), f"{reason} (relative L2): {worst:.1e}")


def _after(built: BuiltStep, key: jax.Array, calls: int) -> tuple[np.ndarray, int]:
    """(the logits, the position) after some calls from a fresh state."""
    memory.give_back()
    with built.program.context():
        state = built.program.init(key)
        for _ in range(calls):
            state, _ = jax.block_until_ready(built.compiled.call(state, {}))
        made: Generated = state.opt_state
        return multihost.on_host(made.logits), int(multihost.on_host(made.position))


def judge_prefill(on: Decoder, built: BuiltStep, right: Reference, key: jax.Array) -> Verdict:
    """The verdict "logits" of the prompts: those of the full forward pass on one device."""
    length, vocab = on.workload.lengths.input, on.workload.shape.vocab
    texts = np.arange(on.batch) % len(right.tokens)
    with built.program.context():
        first = built.program.init(key)
        given: Generated = first.opt_state
        prompts = multihost.put(right.tokens[texts, :length], given.token.sharding)
        forced = dataclasses.replace(first, opt_state=dataclasses.replace(given, token=prompts))
        state, _ = jax.block_until_ready(built.compiled.call(forced, {}))
        found = multihost.on_host(state.opt_state.logits)[:, :vocab]
    worst, limit = float(distance(found, right.logits[length - 1][texts]).max()), tolerance(on)
    reason = f"the logits after a prompt of {length} tokens are {{}}within {limit:.0e} of the full forward pass"
    return _verdict("logits", worst, limit, f"{reason} on one device (relative L2): {worst:.1e}")


def judge_timed(on: Decoder, built: BuiltStep, state: TrainState, one: BuiltStep | None) -> tuple[Verdict, ...]:
    """The verdict "timed state": one more step from it on the mesh against the same step on one device. Donates it.

    one: the step on one device; None: `built` itself, so only finite logits are asked for.
    """
    host, vocab = None if one is None else jax.tree.map(multihost.on_host, state), on.workload.shape.vocab
    with built.program.context():
        after, _ = jax.block_until_ready(built.compiled.call(state, {}))
        found = multihost.on_host(after.opt_state.logits)[:, :vocab]
        del after
    memory.give_back()
    if one is None:
        count = int(np.sum(~np.isfinite(found)))
        reason = f"{'all' if not count else 'NOT all'} logits after the timed steps are finite"
        return (Verdict(name="timed state", ok=not count, reason=reason, value=float(count), limit=0.0),)
    with one.program.context():
        placed = multihost.put(host, one.program.state_sharding, may_alias=False)
        del host
        memory.give_back()
        expected, _ = jax.block_until_ready(one.compiled.call(placed, {}))
        right = multihost.on_host(expected.opt_state.logits)[:, :vocab]
    worst, limit = float(distance(found, right).max()), tolerance(on)
    reason = f"after the timed steps, the logits of one more are {{}}within {limit:.0e} of one device's"
    return (_verdict("timed state", worst, limit, f"{reason} (relative L2): {worst:.1e}"),)


def judge_cache(on: Decoder, compiled: CompiledStep) -> Verdict:
    """The verdict "cache": its bytes on one device are exactly 2 L K H S b for each request."""
    state, _ = present(compiled.inputs)
    leaves = jax.tree.leaves(state.opt_state.cache)
    held = sum(math.prod(x.sharding.shard_shape(x.shape)) * x.dtype.itemsize for x in leaves)
    expected = on.cache_bytes
    shape, lengths = on.workload.shape, on.workload.lengths
    formula = f"2 x {shape.layers} layers x {on.kv_heads} heads x {shape.head} x {lengths.context} places"
    reason = (
        f"the cache of {counted(on.local_batch, 'request')} has {held:,} bytes on a device, "
        f"{'' if held == expected else 'NOT '}{expected:,} ({formula}, {on.form.cache})"
    )
    return Verdict(name="cache", ok=held == expected, reason=reason, value=float(held), limit=float(expected))


def judge_donated(on: Decoder, report: CompileReport) -> Verdict:
    """The verdict "donated": the new cache takes the memory of the old one."""
    shared, needed = report.alias_bytes, on.cache_bytes
    ok = shared >= needed
    reason = f"the step reuses {shared:,} bytes of its state, {'' if ok else 'NOT '}all {needed:,} of the cache"
    return Verdict(name="donated", ok=ok, reason=reason, value=float(shared), limit=None if ok else float(needed))


def judge_sent(on: Decoder, report: CompileReport, part: str) -> Verdict:
    """The verdict "collectives": for each token two all-reduces a layer of batch x width, one for the vocabulary, and
    the gathered best token of each device; nothing under data parallelism."""
    tensor, tokens = on.sizes["tensor"], on.tokens_of(part)
    sums = (2 * on.workload.shape.layers + 1) * tokens if tensor > 1 else 0
    numbers = sums * on.local_batch * on.workload.shape.width
    expected = {"all-reduce": (sums, numbers), "all-gather": (tokens, 2 * on.local_batch * tensor * tokens)}
    if tensor == 1:
        expected = {}
    found = _counted(report.collectives)
    ok = all(found.get(kind, (0, 0)) == expected.get(kind, (0, 0)) for kind in {*found, *expected})
    sent = " and ".join(f"{count:,} {kind} of {size:,} numbers" for kind, (count, size) in found.items()) or "nothing"
    wanted = " and ".join(f"{count:,} {kind} of {size:,}" for kind, (count, size) in expected.items()) or "nothing"
    reason = f"the compiled step sends {sent}, " + ("as expected" if ok else f"but {wanted} are expected")
    value, limit = (float(sum(size for _, size in each.values())) for each in (found, expected))
    excess = 4 * max(0, int(value - limit))
    return Verdict(
        name="collectives", ok=ok, reason=reason, value=value, limit=limit if ok else None, excess_bytes=excess
    )


def _counted(collectives: Iterable[Collective]) -> dict[str, tuple[int, int]]:
    """By kind: (how many, the numbers in their results). Groups of one device send nothing."""
    found: dict[str, tuple[int, int]] = {}
    for each in collectives:
        if each.group != 1:
            count, numbers = found.get(each.kind, (0, 0))
            found[each.kind] = count + each.count, numbers + each.elements + each.packed + each.scalars
    return found


def judge_position(state: TrainState, lengths: Lengths, tokens: int) -> Verdict:
    """The verdict "position": where a text of `output` tokens stands after `tokens` of them, and never beyond it."""
    at = int(multihost.on_host(state.opt_state.position))
    expected = lengths.input + tokens % lengths.output
    beyond = ", beyond the cache" if at >= lengths.context else ""
    reason = f"after {tokens:,} tokens the position is {at} of {lengths.context}"
    reason += ", as expected" if at == expected else f"{beyond}, NOT {expected}"
    return Verdict(name="position", ok=at == expected, reason=reason, value=float(abs(at - expected)), limit=0.0)
