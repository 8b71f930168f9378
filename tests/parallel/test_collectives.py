# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Each collective is one instruction of its kind, over the right groups, with right values, in step and loop."""

from __future__ import annotations

import dataclasses
import math
import re
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding, PartitionSpec
from thin import thin

from jaxbench.errors import UserError
from jaxbench.hlo import collective_counts
from jaxbench.hlo.module import parse
from jaxbench.machine.mesh import groups
from jaxbench.parallel import collectives
from jaxbench.parallel.collectives import Chain
from jaxbench.workloads import CollectiveWorkload
from jaxbench.workloads.cases import COLLECTIVES

WHOLE, ALONG_X, ALONG_Y, ONE = ((8,), "x"), ((2, 4), "x"), ((2, 4), "y"), ((1,), "x")
GROUPINGS = [WHOLE, ALONG_X, ALONG_Y]
GROUPS = {
    WHOLE: [(0, 1, 2, 3, 4, 5, 6, 7)],
    ALONG_X: [(0, 4), (1, 5), (2, 6), (3, 7)],
    ALONG_Y: [(0, 1, 2, 3), (4, 5, 6, 7)],
    ONE: [(0,)],
}
SEED = 3
S = 1024


def make(op: str, grouping: Any = WHOLE, *, dtype: str = "float32", payload_bytes: int = S) -> Chain:
    workload = CollectiveWorkload(op=op, payload_bytes=payload_bytes, dtype=dtype)
    return collectives.build(workload, jax.devices(), *grouping)


def compiled(chain: Chain, *, loop: bool = False) -> Any:
    function = collectives.loop(chain.step) if loop else chain.step
    with jax.set_mesh(chain.mesh):
        jitted = jax.jit(function, donate_argnums=0, keep_unused=True)
        return jitted.lower(*chain.draw(0), *([count(chain, 1)] if loop else [])).compile()


def count(chain: Chain, steps: int) -> jax.Array:
    return jax.device_put(np.int32(steps), NamedSharding(chain.mesh, PartitionSpec()))


def after(chain: Chain, steps: int) -> Any:
    """The state after some calls."""
    call = compiled(chain)
    with jax.set_mesh(chain.mesh):
        state, batch = chain.draw(SEED)
        for _ in range(steps):
            state, _ = call(state, batch)
        return jax.block_until_ready(state)


def communicating(hlo: str) -> list[tuple[int, ...]]:
    """The groups of the one collective in a module, each in ascending order."""
    if pairs := re.search(r"source_target_pairs=\{([\d,{}]*)\}", hlo):
        after_ = dict(tuple(map(int, pair.split(","))) for pair in re.findall(r"\d+,\d+", pairs[1]))
        return sorted({tuple(sorted(_cycle(after_, place))) for place in after_})
    if braces := re.search(r"replica_groups=\{(\{[\d,{}]*\})\}", hlo):
        return sorted(tuple(map(int, group.split(","))) for group in re.findall(r"[\d,]+\d|\d", braces[1]))
    if iota := re.search(r"replica_groups=\[([\d,]+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?", hlo):
        shape, dims, order = ([int(n) for n in (text or "").split(",") if n] for text in iota.groups())
        places = np.arange(math.prod(dims)).reshape(dims)
        return [tuple(row) for row in places.transpose(order or range(len(dims))).reshape(shape).tolist()]
    named = re.search(r"replica_groups=mesh\[(.*?)\] *\{'(\w)'\}", hlo)
    assert named, "no collective"
    return groups(tuple(int(size) for size in re.findall(r"=(\d+)", named[1])), named[2])


def _cycle(following: dict[int, int], place: int) -> list[int]:
    """The ring that contains `place`, in its order."""
    found = [place]
    while (place := following[place]) != found[0]:
        found.append(place)
    return found


@pytest.mark.parametrize(("op", "grouping", "loop"), thin([*product(COLLECTIVES, GROUPINGS, [False, True])]), ids=str)
def test_the_compiled_module_holds_exactly_the_one_collective(op: str, grouping: Any, loop: bool) -> None:
    hlo = compiled(make(op, grouping), loop=loop).as_text()
    (found,) = collective_counts.count(parse(hlo))
    n = len(GROUPS[grouping][0])
    pieces = n if op == "all_to_all" else 1  # XLA on a CPU splits it into one operand per device
    assert (found.kind, found.count) == (collectives.instruction(op, "cpu"), pieces)
    assert found.bytes == (S // n if op == "reduce_scatter" else S)
    assert found.elements * 4 == found.bytes  # float32, as requested
    assert communicating(hlo) == GROUPS[grouping]
    entry = hlo[hlo.index("\nENTRY ") :]
    assert bool(collective_counts.count(parse(entry))) != loop  # in a loop it is in the body, which runs each time


@pytest.mark.parametrize("grouping", GROUPINGS, ids=str)
def test_the_ring_goes_from_each_device_to_the_next_of_its_group(grouping: Any) -> None:
    hlo = compiled(make("ppermute", grouping)).as_text()
    pairs = re.search(r"source_target_pairs=\{([\d,{}]*)\}", hlo)
    assert pairs
    expected = {(a, b) for group in GROUPS[grouping] for a, b in zip(group, group[1:] + group[:1], strict=True)}
    assert {tuple(map(int, pair.split(","))) for pair in re.findall(r"\d+,\d+", pairs[1])} == expected


TYPED = [
    *((g, "float32") for g in (*GROUPINGS, ONE)), (ALONG_X, "bfloat16"), (ALONG_Y, "float16"), (ONE, "bfloat16"),
    (WHOLE, "bfloat16"), (WHOLE, "int32"), (ALONG_X, "int8"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("op", "grouping", "dtype"), thin([(op, *typed) for op in COLLECTIVES for typed in TYPED]), ids=str
)
def test_every_value_of_every_device_is_right(op: str, grouping: Any, dtype: str) -> None:
    chain = make(op, grouping, dtype=dtype)
    state = after(chain, 2)
    assert state[-1].dtype == dtype and state[-1].size == chain.values
    assert chain.wrong is not None
    assert chain.wrong(state, SEED) == 0
    assert chain.wrong(state, SEED + 1) > chain.values / 3  # another draw is mostly wrong: the draw is not trivial
    assert 0 < chain.zeros(SEED) < 0.2


@pytest.mark.parametrize("op", COLLECTIVES)
def test_a_loop_of_steps_is_right_too(op: str) -> None:
    for grouping in GROUPINGS:
        chain = make(op, grouping)
        with jax.set_mesh(chain.mesh):
            state = compiled(chain, loop=True)(*chain.draw(SEED), count(chain, 5))
        assert chain.wrong is not None and chain.wrong(state, SEED) == 0


@pytest.mark.parametrize("op", COLLECTIVES)
def test_each_step_needs_the_result_of_the_one_before(op: str) -> None:
    """With one instead of zero, each device's argument includes the first value of its own result."""
    chain = make(op)
    call = compiled(chain)
    with jax.set_mesh(chain.mesh):
        state, (zero,) = chain.draw(SEED)
        before = np.array(state[0]).reshape(8, -1)
        state, _ = call(state, (jax.device_put(np.float32(1), zero.sharding),))
    x, out = (np.asarray(array).reshape(8, -1) for array in (state[0], state[-1]))
    np.testing.assert_array_equal(x[:, 0], before[:, 0] + out[:, 0])
    np.testing.assert_array_equal(x[:, 1:], before[:, 1:])


@pytest.mark.parametrize("op", COLLECTIVES)
def test_a_draw_in_shared_memory_is_not_written_to(op: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """jax.device_put shares a NumPy array with a CPU device if it is aligned to 64 bytes, requested or not."""
    kept = []
    draw = collectives.drawn_values

    def aligned(*args: Any) -> np.ndarray:
        values = draw(*args)
        memory = np.zeros(values.nbytes + 64, np.uint8)
        at = -memory.ctypes.data % 64
        kept.append((memory[at : at + values.nbytes].view(values.dtype), values))
        kept[-1][0][:] = values
        return kept[-1][0]

    monkeypatch.setattr(collectives, "drawn_values", aligned)
    chain = make(op)
    state = after(chain, 3)
    assert chain.wrong is not None and chain.wrong(state, SEED) == 0
    first, _ = chain.draw(SEED)
    of_host = {array.ctypes.data for array, _ in kept}
    assert {shard.data.unsafe_buffer_pointer() for shard in first[0].addressable_shards} <= of_host
    for array, values in kept:
        np.testing.assert_array_equal(array, values)


@pytest.mark.parametrize("op", COLLECTIVES)
def test_a_result_that_no_step_made_is_wrong(op: str) -> None:
    chain = make(op)
    state, _ = chain.draw(SEED)
    assert chain.wrong is not None and chain.wrong(state, SEED) > chain.values / 2


@pytest.mark.parametrize("op", COLLECTIVES)
def test_the_wrong_axis_is_caught(op: str) -> None:
    along_x, along_y = make(op, ALONG_X), make(op, ALONG_Y)
    assert along_y.wrong is not None
    assert along_y.wrong(after(along_x, 1), SEED) > along_y.values / 4


def _ring_backwards(x: jax.Array) -> jax.Array:
    return jax.lax.ppermute(x, "x", [(i, (i - 1) % 8) for i in range(8)])


def _psum(x: jax.Array) -> jax.Array:
    return jax.lax.pcast(jax.lax.psum(x, "x"), "x", to="varying")


LIES: list[tuple[str, Any]] = [
    ("all_reduce", lambda x: x),
    ("all_reduce", lambda x: _psum(_psum(x))),
    ("all_reduce", lambda x: _psum(x) / 8),
    ("all_reduce", lambda x: jnp.full_like(x, jnp.nan)),
    ("all_gather", lambda x: jnp.tile(x, 8)),
    ("all_gather", lambda x: jax.lax.all_gather(_ring_backwards(x), "x", tiled=True)),
    ("reduce_scatter", lambda x: x[: x.size // 8]),
    ("reduce_scatter", lambda x: _ring_backwards(jax.lax.psum_scatter(x, "x", tiled=True))),
    ("all_to_all", lambda x: x),
    ("all_to_all", _ring_backwards),
    ("broadcast", lambda x: _psum(jnp.where(jax.lax.axis_index("x") == 1, x, 0))),
    ("ppermute", _ring_backwards),
    ("ppermute", lambda x: x),
]


@pytest.mark.parametrize(("op", "lie"), LIES)
def test_a_wrong_program_is_caught(op: str, lie: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collectives, "_collective", lambda *_: lie)
    chain = make(op)
    assert chain.wrong is not None and chain.wrong(after(chain, 2), SEED) > chain.values / 3


def test_one_wrong_value_of_one_device_is_counted() -> None:
    chain = make("all_gather", ALONG_X)
    result = after(chain, 1)[-1]
    changed = np.array(result)
    changed[700] += 1
    assert chain.wrong is not None
    assert chain.wrong((jax.device_put(changed, result.sharding),), SEED) == 1


def test_the_period_of_the_values_is_no_multiple_of_any_part() -> None:
    """Device 2 receives the values of device 0, two parts later: detected although the values repeat."""
    op, size = "all_to_all", 2**18
    chain = make(op, payload_bytes=4 * size)
    assert size // 8 * 2 >= collectives.PERIOD  # the period of the values
    state = after(chain, 1)
    assert chain.wrong is not None and chain.wrong(state, SEED) == 0
    swapped = np.asarray(state[-1]).reshape(8, size)[[2, 1, 0, *range(3, 8)]].ravel()
    assert chain.wrong((jax.device_put(swapped, state[-1].sharding),), SEED) > size


def test_the_state_is_donated_without_a_further_allocation() -> None:
    for op in sorted(set(COLLECTIVES) - {"all_to_all"}):
        chain = make(op, payload_bytes=2**16)
        state, batch = chain.draw(SEED)
        step = compiled(chain)
        carried = sum(leaf.nbytes for leaf in state) // 8
        assert step.memory_analysis().alias_size_in_bytes == carried
        assert step.memory_analysis().temp_size_in_bytes < 1024
        with jax.set_mesh(chain.mesh):
            step(state, batch)
        assert all(leaf.is_deleted() for leaf in state)


@pytest.mark.parametrize(("op", "dtype"), thin([*product(COLLECTIVES, ["float32", "bfloat16", "float16"])]))
def test_no_more_is_held_than_said(op: str, dtype: str) -> None:
    workload = CollectiveWorkload(op=op, payload_bytes=2**16, dtype=dtype)
    for grouping in GROUPINGS:
        chain = collectives.build(workload, jax.devices(), *grouping)
        memory = compiled(chain).memory_analysis()
        held = memory.argument_size_in_bytes + memory.temp_size_in_bytes
        said = collectives.resident_bytes(workload, 8, len(GROUPS[grouping][0]), "cpu")
        assert 8 * held <= said * 1.01 + 8 * 256 and said < 2.1 * 8 * held


def test_a_cpu_moves_bfloat16_as_float32() -> None:
    """As in docs/metrics: the payload counts two bytes per value, the module moves four. float16 is not widened."""
    for dtype, bytes_moved in (("bfloat16", 2 * S), ("float16", S)):
        (found,) = collective_counts.count(parse(compiled(make("all_reduce", dtype=dtype)).as_text()))
        assert found.bytes == bytes_moved


def test_on_a_gpu_broadcast_is_one_broadcast_from_the_first_of_each_group(monkeypatch: pytest.MonkeyPatch) -> None:
    assert collectives.instruction("broadcast", "gpu") == "collective-broadcast"
    monkeypatch.setattr(collectives, "has_broadcast", lambda platform: True)
    chain = make("broadcast", ALONG_Y)
    with jax.set_mesh(chain.mesh):
        state, batch = chain.draw(SEED)
        lowered = jax.jit(chain.step, keep_unused=True).trace(state, batch).lower(lowering_platforms=("cuda",))
    assert len(state) == 2
    text = lowered.as_text()
    assert text.count("stablehlo.collective_broadcast") == 1 and "all_reduce" not in text


@pytest.mark.parametrize(
    ("op", "asked", "dtype", "n", "used", "argument", "result"),
    [
        ("all_reduce", 1024, "float32", 8, 1024, 256, 256),
        ("all_reduce", 40, "float32", 8, 40, 10, 10),  # a bias of ten: nothing is cut, so nothing is rounded
        ("all_reduce", 1, "float32", 8, 4, 1, 1),
        ("all_gather", 1000, "float32", 8, 992, 31, 248),
        ("all_gather", 1024, "bfloat16", 3, 1026, 171, 513),
        ("reduce_scatter", 1010, "float32", 8, 1024, 256, 32),
        ("reduce_scatter", 1, "float16", 8, 16, 8, 1),
        ("all_to_all", 1000, "int8", 3, 999, 999, 999),
        ("broadcast", 1001, "float16", 8, 1000, 500, 500),
        ("ppermute", 1000, "float32", 1, 1000, 250, 250),
    ],
)
def test_a_payload_is_the_nearest_that_divides(
    op: str, asked: int, dtype: str, n: int, used: int, argument: int, result: int
) -> None:
    workload = CollectiveWorkload(op=op, payload_bytes=asked, dtype=dtype)
    assert collectives.payload(workload, n) == used
    assert collectives.lengths(workload, n) == (argument, result)
    chain = collectives.build(workload, jax.devices(), (n,), "x")
    assert chain.values == n * result
    assert chain.wrong is not None and chain.wrong(after(chain, 1), SEED) == 0


def test_the_experiment_and_the_programs_have_the_same_names() -> None:
    for op in COLLECTIVES:
        assert collectives.segments(op, (0, 1), 0, 4)
        assert collectives.instruction(op, "gpu") in collective_counts.COLLECTIVES
        assert dataclasses.is_dataclass(make(op, ONE))


@pytest.mark.parametrize("op", COLLECTIVES)
def test_the_answers_are_those_of_plain_numpy(op: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Written out for one group of three devices, and compared in blocks of uneven size."""
    monkeypatch.setattr(collectives, "BLOCK", 7)
    places, n, count = (2, 5, 3), 3, 12
    held = [collectives.drawn_values(SEED, (place,), 0, count, np.dtype("int32"), 7) for place in places]
    parts = [array.reshape(n, count // n) for array in held]
    right = {
        "all_reduce": lambda rank: sum(held),
        "all_gather": lambda rank: np.concatenate(held),
        "reduce_scatter": lambda rank: sum(parts)[rank],
        "all_to_all": lambda rank: np.concatenate([part[rank] for part in parts]),
        "broadcast": lambda rank: held[0],
        "ppermute": lambda rank: held[(rank + 2) % 3],
    }[op]
    for rank in range(n):
        result = np.asarray(right(rank))
        expected = collectives.segments(op, places, rank, result.size)
        assert collectives.count_wrong(result, expected, SEED, 7) == 0
        assert collectives.count_wrong(result + 1, expected, SEED, 7) == result.size
        assert collectives.count_wrong(result[:-1], expected, SEED, 7) == result.size


@pytest.mark.parametrize(
    ("dtype", "summands", "largest"),
    [("float32", 32, 7), ("bfloat16", 32, 7), ("bfloat16", 64, 4), ("float16", 1024, 2), ("int8", 32, 3)],
)
def test_sums_are_exact_in_the_dtype(dtype: str, summands: int, largest: int) -> None:
    assert collectives.require_exact("all_reduce", jnp.dtype(dtype), summands) == largest
    whole = np.arange(largest * summands + 1)
    assert np.array_equal(whole.astype(jnp.dtype(dtype)).astype(int), whole)


def test_a_sum_that_cannot_be_checked_is_refused() -> None:
    with pytest.raises(UserError, match="all_reduce in bfloat16 over 300 devices cannot be exact"):
        collectives.require_exact("all_reduce", jnp.dtype("bfloat16"), 300)
