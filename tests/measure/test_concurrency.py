# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The number of collectives that can wait at once, for compiled programs with a known answer."""

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from jaxbench.errors import MoreCollectives
from jaxbench.machine.mesh import data_mesh
from jaxbench.machine.start import require_threads, threads
from jaxbench.measure.concurrency import concurrent_collectives

AROUND = [(i, (i + 1) % 8) for i in range(8)]


def permuted(x: jax.Array) -> jax.Array:
    return jax.lax.ppermute(x, "data", AROUND)


def compiled(function, arrays: int) -> str:
    mesh = data_mesh(jax.devices(), AxisType.Auto)
    split = NamedSharding(mesh, PartitionSpec("data"))
    given = [jax.ShapeDtypeStruct((8, 16), jnp.float32, sharding=split)] * arrays
    step = jax.shard_map(function, mesh=mesh, in_specs=PartitionSpec("data"), out_specs=PartitionSpec("data"))
    return jax.jit(step).lower(*given).compile().as_text()


def chain(x, times):
    for _ in range(times):
        x = jnp.sin(permuted(x))
    return x


@pytest.mark.parametrize(
    ("function", "arrays", "expected"),
    [
        (lambda x: jnp.sin(x), 1, 0),
        (lambda x: chain(x, 4), 1, 1),
        (lambda x, y: (chain(x, 3), chain(y, 2)), 2, 2),
        (lambda x, y, z: permuted(jnp.sin(permuted(x)) + permuted(y) * permuted(z)), 3, 3),
        (lambda x: jax.lax.fori_loop(0, 5, lambda _, x: chain(x, 2), x), 1, 1),
        (lambda x, y: (jax.lax.fori_loop(0, 5, lambda _, x: chain(x, 2), x), permuted(y)), 2, 2),
        (lambda x, y: jax.lax.fori_loop(0, 5, lambda _, xy: (chain(xy[0], 1), chain(xy[1], 2)), (x, y)), 2, 2),
    ],
)
def test_the_widest_place_of_a_program(function, arrays, expected):
    assert concurrent_collectives(compiled(function, arrays)) == expected


def test_text_without_a_program_has_none():
    assert concurrent_collectives("") == 0


def test_two_threads_a_device_for_one_collective_at_once():
    assert [threads(devices, 1) for devices in (1, 2, 4, 8)] == [1, 4, 8, 16]
    assert threads(2, 6) == 9 and threads(1, 6) == 1


def test_a_program_that_could_hang_is_refused(monkeypatch):
    monkeypatch.setenv("NPROC", str(threads(8, 2)))
    require_threads(8, 2)
    require_threads(1, 99)
    with pytest.raises(MoreCollectives, match="3 collectives") as raised:
        require_threads(8, 3)
    assert raised.value.count == 3
