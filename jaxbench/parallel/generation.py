# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The programs of a decoder on a mesh with the axes data and tensor: prefill, one step, a scan of steps, and parts.

The step takes and returns a donated state: the weights, the cache, the next token of each request, the position and
the logits that chose the token. After the output, the position returns to the end of the prompt.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from jaxbench.core.program import Program, TrainState
from jaxbench.core.workload import KEY
from jaxbench.errors import UserError
from jaxbench.levers import MESH
from jaxbench.machine.cores import last_level_cache_bytes
from jaxbench.machine.mesh import squarest
from jaxbench.parallel import axes
from jaxbench.workloads.generation import GenerationWorkload
from jaxbench.workloads.models import decoder
from jaxbench.workloads.models.decoder import Block, Cache, Form, Layer, Norm, Weights
from jaxbench.workloads.models.gpt import Dimensions

STRATEGIES = ("tensor", "data", "both")
# The programs, as values of the lever `part`. Each of those after "scan" leaves out more of a step: its collectives;
# then the cache; then all but the products. "messages" and "tiny" are the collectives alone, with the payload of the
# step and with one number each; "triad" reads and writes memory as fast as it can.
STEP, SCAN, PREFILL = "step", "scan", "prefill"
LOCAL, WEIGHTS, PRODUCTS, MESSAGES, TINY, TRIAD = "local", "weights", "products", "messages", "tiny", "triad"
# Numbers in each of the two arrays that a device has for the triad. On CPUs the arrays of all devices together take at
# least four times the processor's cache.
TRIAD_NUMBERS = {"cpu": 2**23}
TRIAD_NUMBERS_ELSEWHERE = 2**28
CACHES = 4
# Tokens of a scan, or all of the output if that is shorter. A token that takes a CPU about a second shows the cost of
# starting as little in eight as in two, and a visit to a scan of eight would take a minute.
SCANNED, SCANNED_LONG = 8, 2
LONG = 5e8  # parameters and numbers in caches that a long token reads


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Generated:
    """What a step hands to the next, except the weights. token: (B,) int32, given at `position`, an int32 scalar; of a
    prefill, the prompts (B, input). logits: (B, V) float32, which chose the token."""

    cache: Cache
    token: jax.Array
    position: jax.Array
    logits: jax.Array


def mesh_sizes(strategy: str, devices: int, mesh: str = MESH.default) -> dict[str, int]:
    """The devices along the axes data and tensor. mesh: the value of the lever, for the strategy `both`.

    Raises UserError for a mesh that the strategy does not take.
    """
    if strategy != "both":
        if mesh != MESH.default:
            raise UserError(
                f"--config.lever.mesh={mesh} needs the strategy both, because '{strategy}' defines its own mesh: use "
                "--config.strategy=both."
            )
        return {"data": devices if strategy == "data" else 1, "tensor": devices if strategy == "tensor" else 1}
    if mesh == MESH.default:
        shape = squarest(devices)
        return {"data": shape[0], "tensor": shape[1]} if len(shape) == 2 else {"data": 1, "tensor": devices}
    sizes = axes.parse(mesh)
    axes.require_product(sizes, devices, mesh)
    if other := [name for name in sizes if name not in ("data", "tensor")]:
        raise UserError(f"--config.lever.mesh={mesh} has the axis {other[0]}: generation has data and tensor only.")
    return {"data": sizes.get("data", 1), "tensor": sizes.get("tensor", 1)}


def resolved(form: str, platform: str) -> str:
    """A number format; "auto" is that of the platform."""
    return form if form != "auto" else "float32" if platform == "cpu" else "bfloat16"


def form_of(workload: GenerationWorkload, platform: str, sizes: dict[str, int]) -> Form:
    """How each device of a mesh computes."""
    weights = resolved(workload.weights, platform)
    # Narrow weights on a CPU are multiplied in float32: it converts 16 bits, too.
    wide = weights == "float32" or (platform == "cpu" and weights != "bfloat16")
    cache = "float32" if wide else "bfloat16"
    return Form(
        dtype=jnp.float32 if wide else jnp.bfloat16,
        cache=cache if workload.cache == "auto" else workload.cache,
        layout=workload.layout,
        attention="paged" if (platform, workload.attention) == ("tpu", "pallas") else workload.attention,
        axis="tensor" if sizes["tensor"] > 1 else None,
    )


@dataclass(frozen=True, kw_only=True)
class Decoder:
    """A workload on a mesh: what its programs are built from.

    batch: requests of all devices. sizes: of the mesh's axes. weights_form: the stored format of the weights.
    """

    workload: GenerationWorkload
    mesh: Mesh
    sizes: dict[str, int]
    form: Form
    weights_form: str
    batch: int

    @classmethod
    def on(cls, workload: GenerationWorkload, devices: list[jax.Device], sizes: dict[str, int], batch: int) -> Decoder:
        """Raises Unsupported for a model that does not divide over the axis tensor."""
        decoder.require_heads(workload.shape, sizes["tensor"])
        platform = devices[0].platform
        form = form_of(workload, platform, sizes)
        mesh = axes.mesh_of(devices, sizes)
        weights = resolved(workload.weights, platform)
        return cls(workload=workload, mesh=mesh, sizes=sizes, form=form, weights_form=weights, batch=batch)

    @property
    def local_batch(self) -> int:
        return self.batch // self.sizes["data"]

    @property
    def kv_heads(self) -> int:
        """Heads of keys and values on one device."""
        shape = self.workload.shape
        return (shape.kv_heads or shape.heads) // self.sizes["tensor"]

    def tokens_of(self, part: str) -> int:
        """The tokens that one call of a part generates for each request."""
        return tokens_of(self.workload, part, self.batch, self.mesh.devices.flat[0].platform)

    @property
    def cache_bytes(self) -> int:
        """2 L K H S b for each request on one device; int8 adds a float32 scale for each place and head."""
        shape, lengths = self.workload.shape, self.workload.lengths
        places = 2 * shape.layers * self.kv_heads * lengths.context * self.local_batch
        size = jnp.dtype(decoder.DTYPES[self.form.cache]).itemsize
        return places * (shape.head * size + (4 if self.form.cache == "int8" else 0))

    @property
    def specs(self) -> tuple[Weights, Generated]:
        """PartitionSpecs in the places of the arrays."""
        spec = PartitionSpec
        tensor, data = self.form.axis, ("data" if self.sizes["data"] > 1 else None)
        shape, whole = self.workload.shape, PartitionSpec()
        weights = _specs(shape, self.weights_form, tensor)
        of_layer = self.form.ordered(data, tensor, None)
        place = spec(*of_layer) if self.form.per_layer else spec(None, *of_layer)
        count = shape.layers if self.form.per_layer else 1
        scales = (place,) * (count if self.form.cache == "int8" else 0)
        cache = Cache((place,) * count, (place,) * count, scales, scales)  # type: ignore[arg-type]
        return weights, Generated(cache, spec(data), whole, spec(data, tensor))  # type: ignore[arg-type]

    def shardings(self, *, prompts: bool = False) -> TrainState:
        """Of a state. prompts: as in `first`; they are split as tokens are."""
        weights, generated = self.specs
        on = partial(NamedSharding, self.mesh)
        placed = jax.tree.map(on, (weights, generated), is_leaf=lambda x: isinstance(x, PartitionSpec))
        whole = on(PartitionSpec())
        return TrainState(whole, placed[0], {}, placed[1], whole)  # type: ignore[arg-type]

    def weights(self, key: jax.Array) -> Weights:
        """The weights of a key, uint32 (2,), laid out on the mesh."""
        shape, seed = self.workload.shape, _seed(key)
        blocks, ends = _makers(shape, self.weights_form, self.mesh, self.form.axis)
        tokens, positions, norm = ends(seed)
        return Weights(tokens, positions, tuple(blocks(seed + jnp.uint32(1 + i)) for i in range(shape.layers)), norm)

    def first(self, key: jax.Array, *, prompts: bool = False) -> TrainState:
        """A state at the end of the prompt. The cache has random values: what a step costs does not depend on them.

        prompts: whether the tokens are prompts, as in a prefill. Each array is made by a small program that all points
        share: one program for all would take longer to compile than the step.
        """
        shape, lengths = self.workload.shape, self.workload.lengths
        where = self.shardings(prompts=prompts)
        cache = jax.jit(self._cache, out_shardings=where.opt_state.cache)(key)
        token = jnp.arange(self.batch, dtype=jnp.int32) % shape.vocab
        if prompts:
            token = (token[:, None] + 7 * jnp.arange(lengths.input, dtype=jnp.int32)) % shape.vocab
        logits = jnp.zeros((self.batch, shape.rows), jnp.float32)
        others = (jnp.int32(0), token, jnp.int32(lengths.input), logits, key)
        generated = where.opt_state
        on = (where.step, generated.token, generated.position, generated.logits, where.key)
        step, token, position, logits, kept = jax.jit(lambda *given: given, out_shardings=on)(*others)
        return TrainState(step, self.weights(key), {}, Generated(cache, token, position, logits), kept)

    def _cache(self, key: jax.Array) -> Cache:
        """A full cache of keys and values, with numbers drawn from `key`."""
        shape = self.workload.shape
        heads, places = shape.kv_heads or shape.heads, self.workload.lengths.context
        zeros = decoder.empty_cache(shape, self.form, self.batch, places, kv_heads=heads)
        return Cache(*(tuple(map(partial(_filled, seed=_seed(key)), each)) for each in vars(zeros).values()))

    def program(
        self, step: Callable[[TrainState], TrainState], *, donate: bool = True, prompts: bool = False
    ) -> Program:
        """A Program of a step of one device's part of the state. prompts: as in `first`."""
        shardings = self.shardings(prompts=prompts)
        specs = jax.tree.map(lambda on: on.spec, shardings)
        mapped = jax.shard_map(step, mesh=self.mesh, in_specs=(specs,), out_specs=specs, check_vma=False)

        def whole(state: TrainState, batch: dict[str, jax.Array]) -> tuple[TrainState, dict[str, jax.Array]]:
            return mapped(state), {}

        init = partial(self.first, prompts=prompts)

        def avals() -> tuple[TrainState, dict[str, jax.Array]]:
            shapes = jax.eval_shape(init, KEY)
            placed = jax.tree.map(lambda x, on: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=on), shapes, shardings)
            return placed, {}

        jitted = jax.jit(whole, donate_argnums=0 if donate else (), out_shardings=(shardings, {}), keep_unused=True)
        return Program(
            mesh=self.mesh,
            init=init,
            step=jitted,
            state_sharding=shardings,
            put=dict,
            batch_parts=self.sizes["data"],
            avals=avals,
        )

    def token(self, state: TrainState, form: Form) -> TrainState:
        """One generated token on one device: the step of the user's loop."""
        generated: Generated = state.opt_state
        lengths, words = self.workload.lengths, self.workload.shape.vocab
        cache, logits = decoder.forward(
            state.params, generated.cache, generated.token[:, None], generated.position, words, form
        )
        after = generated.position + 1
        position = jnp.where(after >= lengths.input + lengths.output, lengths.input, after)
        made = Generated(cache, decoder.chosen(logits, form), position, logits)
        return dataclasses.replace(state, opt_state=made)


def _specs(shape: Dimensions, form: str, tensor: str | None) -> Weights:
    """The PartitionSpecs of weights in a stored format. tensor: the axis that splits them; None: none does."""
    spec, whole = PartitionSpec, PartitionSpec()
    narrow = form in ("int8", "fp8")

    def layer(kernel: tuple[str | None, ...], inputs: int) -> Layer:
        outputs = spec(*kernel[inputs:])
        scale, bias = outputs if narrow else None, None if shape.rms else outputs
        return Layer(spec(*kernel), scale, bias)  # type: ignore[arg-type]

    norm = Norm(whole, None if shape.rms else whole)  # type: ignore[arg-type]
    up = layer((None, tensor), 1)
    block = Block(
        norm_attention=norm,
        grouped=layer((None, tensor, None, None), 1),
        out=layer((tensor, None, None), 2),
        norm_perceptron=norm,
        up=up,
        gate=up if shape.gated else None,
        down=layer((tensor, None), 1),
    )
    tokens = Layer(spec(tensor, None), spec(tensor) if narrow else None, None)  # type: ignore[arg-type]
    return Weights(tokens, whole, (block,) * shape.layers, norm)  # type: ignore[arg-type]


@functools.cache
def _makers(
    shape: Dimensions, form: str, mesh: Mesh, tensor: str | None
) -> tuple[Callable[[jax.Array], Block], Callable[[jax.Array], tuple[Layer, jax.Array, Norm]]]:
    """Jitted functions of a seed: a block, and what is outside of the blocks. All points of a process share them."""
    specs = _specs(shape, form, tensor)
    tree = (specs.blocks[0], (specs.tokens, specs.positions, specs.norm))
    block, ends = jax.tree.map(partial(NamedSharding, mesh), tree, is_leaf=_is_spec)
    return (
        jax.jit(partial(decoder.init_block, shape, form), out_shardings=block),
        jax.jit(partial(decoder.init_ends, shape, form), out_shardings=ends),
    )


def _seed(key: jax.Array) -> jax.Array:
    """A key as one whole number."""
    return key[1].astype(jnp.uint32) + jnp.uint32(97) * key[0].astype(jnp.uint32)


def _filled(zeros: jax.Array, seed: jax.Array) -> jax.Array:
    """Values like those of a prompt, the same for each request: drawn along the last two axes only."""
    drawn = decoder.noise(seed + jnp.uint32(5), zeros.shape[-2:], 1.0)
    scaled = jnp.round(60 * drawn) if zeros.dtype == jnp.int8 else drawn
    return zeros + scaled.astype(zeros.dtype)


def _counted(state: TrainState) -> TrainState:
    """The state after one more step."""
    return dataclasses.replace(state, step=state.step + 1)


def step(on: Decoder, *, donate: bool = True) -> Program:
    """One token for each request."""
    return on.program(lambda state: _counted(on.token(state, on.form)), donate=donate)


def tokens_of(workload: GenerationWorkload, part: str, batch: int, platform: str) -> int:
    """The tokens that one call of a part generates for each request. batch: requests of all devices."""
    if part in (STEP, PREFILL, TRIAD):
        return 1
    shape, lengths = workload.shape, workload.lengths
    places = 2 * shape.layers * (shape.kv_heads or shape.heads) * lengths.context
    long = platform == "cpu" and workload.parameters + batch * places * shape.head > LONG
    return min(SCANNED_LONG if long else SCANNED, lengths.output)


def scan(on: Decoder, form: Form | None = None) -> Program:
    """Several tokens in one program, which is started once. form: of an ablation; None: the whole step."""
    used = form or on.form
    count = on.tokens_of(SCAN)

    def body(state: TrainState, _: None) -> tuple[TrainState, None]:
        return on.token(state, used), None

    return on.program(lambda state: _counted(jax.lax.scan(body, state, None, length=count)[0]))


def prefill(on: Decoder) -> Program:
    """The prompts of the batch fill their caches, and each chooses its first token."""
    lengths, words = on.workload.lengths, on.workload.shape.vocab

    def local(state: TrainState) -> TrainState:
        generated: Generated = state.opt_state
        prompts = generated.token
        cache, logits = decoder.forward(state.params, generated.cache, prompts, jnp.int32(0), words, on.form)
        # The next call's prompts depend on this one, so none can be left out.
        token = prompts.at[:, 0].set(decoder.chosen(logits, on.form))
        made = Generated(cache, token, jnp.int32(lengths.input), logits)
        return _counted(dataclasses.replace(state, opt_state=made))

    return on.program(local, prompts=True)


def part(on: Decoder, name: str) -> Program:
    """A part of the step, as a scan: what it saves is the time of what it leaves out."""
    if name in (MESSAGES, TINY):
        return messages(on, tiny=name == TINY)
    changes: dict[str, dict[str, bool]] = {
        LOCAL: {"communicate": False},
        WEIGHTS: {"communicate": False, "attend": False},
        PRODUCTS: {"communicate": False, "attend": False, "between": False},
    }
    return scan(on, dataclasses.replace(on.form, **changes[name]))  # type: ignore[arg-type]


def _of_vectors(
    on: Decoder, numbers: tuple[int, ...], local: Callable[[list[jax.Array]], list[jax.Array]], axis: tuple[str, ...]
) -> Program:
    """A Program of float32 or narrower vectors alone. numbers: of each vector, on one device."""
    sharding = NamedSharding(on.mesh, PartitionSpec(axis))
    whole = NamedSharding(on.mesh, PartitionSpec())
    devices, dtype = on.mesh.size, on.form.dtype
    placed = TrainState(whole, [sharding] * len(numbers), {}, {}, whole)  # type: ignore[arg-type]

    def first(key: jax.Array) -> TrainState:
        arrays = [jnp.full((devices * n,), 1 / (1 + i), dtype) for i, n in enumerate(numbers)]
        return TrainState(jnp.int32(0), arrays, {}, {}, key)

    def one(state: TrainState) -> TrainState:
        return _counted(dataclasses.replace(state, params=local(state.params)))

    specs = jax.tree.map(lambda each: each.spec, placed)
    mapped = jax.shard_map(one, mesh=on.mesh, in_specs=(specs,), out_specs=specs, check_vma=False)

    def avals() -> tuple[TrainState, dict[str, jax.Array]]:
        shapes = jax.eval_shape(first, KEY)
        made = jax.tree.map(lambda x, at: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=at), shapes, placed)
        return made, {}

    return Program(
        mesh=on.mesh,
        init=jax.jit(first, out_shardings=placed),
        step=jax.jit(lambda state, batch: (mapped(state), {}), donate_argnums=0, out_shardings=(placed, {})),
        state_sharding=placed,
        put=dict,
        batch_parts=on.sizes["data"],
        avals=avals,
    )


def messages(on: Decoder, *, tiny: bool) -> Program:
    """The all-reduces of a step alone, each after the one before, for as many steps as a scan has.

    tiny: of one number instead of the activations: their time is the latency of a message.
    """
    shape, count = on.workload.shape, on.tokens_of(SCAN)
    size = 1 if tiny else on.local_batch * shape.width
    sums, share = 2 * shape.layers + 1, 1.0 / on.sizes["tensor"]

    def local(arrays: list[jax.Array]) -> list[jax.Array]:
        def body(x: jax.Array, _: None) -> tuple[jax.Array, None]:
            for _number in range(sums):
                # The mean of equal numbers is the number itself, so the payload stays finite.
                x = (jax.lax.psum(x, "tensor") * share).astype(x.dtype)
            return x, None

        return [jax.lax.scan(body, arrays[0], None, length=count)[0]]

    return _of_vectors(on, (size,), local, ("data", "tensor"))


def triad(on: Decoder) -> Program:
    """a = a + 3 b on each device, over arrays that no cache holds: two reads and a write of memory that was just read.

    As a = b + 3 c, which returns b and c for the next call, XLA for CPUs would copy both.
    """

    def local(arrays: list[jax.Array]) -> list[jax.Array]:
        a, b = arrays
        return [a + 3 * b, b]

    return _of_vectors(on, (triad_numbers(on),) * 2, local, ("data", "tensor"))


def triad_numbers(on: Decoder) -> int:
    """Numbers in each array of a device."""
    platform = on.mesh.devices.flat[0].platform
    least, cache = TRIAD_NUMBERS.get(platform, TRIAD_NUMBERS_ELSEWHERE), last_level_cache_bytes() or 0
    if platform != "cpu":
        return least
    return max(least, CACHES * cache // (2 * on.mesh.size * jnp.dtype(on.form.dtype).itemsize))


def triad_bytes(on: Decoder) -> int:
    """Bytes that one device moves in a triad."""
    return 3 * jnp.dtype(on.form.dtype).itemsize * triad_numbers(on)


def flops(workload: GenerationWorkload, batch: int, tokens: int = 1) -> float:
    """FLOPs of generating `tokens` tokens for each of `batch` requests, with the whole cache attended to."""
    shape = workload.shape
    kv, inner = shape.kv_heads or shape.heads, shape.heads * shape.head
    products = shape.width * (inner + 2 * kv * shape.head) + inner * shape.width
    products += (3 if shape.gated else 2) * shape.width * shape.between
    attention = 2 * workload.lengths.context * inner
    return 2.0 * batch * tokens * (shape.layers * (products + attention) + shape.width * shape.vocab)


def prefill_flops(workload: GenerationWorkload, batch: int) -> float:
    """FLOPs of the prompts of `batch` requests: half of the scores are masked."""
    shape, length = workload.shape, workload.lengths.input
    per_token = flops(workload, 1) - 2.0 * shape.width * shape.vocab
    per_token -= 4.0 * shape.layers * workload.lengths.context * shape.heads * shape.head
    attention = 2.0 * shape.layers * length * length * shape.heads * shape.head
    return batch * (length * per_token + attention + 2.0 * shape.width * shape.vocab)


def weight_bytes(on: Decoder) -> int:
    """Bytes of the weights that a step reads on one device: all but the positions."""
    weights = jax.eval_shape(on.first, KEY).params
    specs = on.specs[0]
    leaves = zip(jax.tree.leaves(weights), jax.tree.leaves(specs, is_leaf=_is_spec), strict=True)
    total = sum(_local_size(x.shape, spec, on.sizes) * x.dtype.itemsize for x, spec in leaves)
    return total - math.prod(weights.positions.shape) * weights.positions.dtype.itemsize


def _is_spec(x: object) -> bool:
    return isinstance(x, PartitionSpec)


def _local_size(shape: tuple[int, ...], spec: PartitionSpec, sizes: dict[str, int]) -> int:
    return math.prod(shape) // math.prod(sizes[name] for name in spec if name is not None)
