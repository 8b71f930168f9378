# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Probes over hosts: all-reduces over the devices of all hosts, and messages between pairs of hosts in logarithmic
rounds.

In round k each host sends to the host 2^k places further, all at once. So N hosts need log2 N rounds, and each host has
as many links of its own to compare.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from jaxbench.features.accept import bits, device_probes
from jaxbench.features.accept.device_probes import Devices, Runner, Wrong
from jaxbench.processes.group import ProcessGroup

REDUCES = ("hosts_allreduce_1", "hosts_allreduce_256")
PAIRS = "host_pairs"
NAMES = (*REDUCES, PAIRS)


def probe(name: str, devices: Sequence[jax.Device], here: Devices) -> Runner | str:
    """A probe over hosts, or why it is left out. devices: of all hosts."""
    group = ProcessGroup.of(devices)
    if name == PAIRS:
        return messages(devices, here, group)
    size = here.sizes.large if name.endswith("256") else here.sizes.small
    # All processes must decide alike, so the one with the least memory decides.
    reasons = group.all_gather(device_probes.too_large(here) if size == here.sizes.large else "")
    if why := next(filter(None, reasons), ""):
        return str(why)
    return device_probes.all_reduce(name, devices, size, group.barrier)


def distances(hosts: int) -> list[int]:
    """By how many places messages travel in each round: 1, 2, 4, ... below the number of hosts."""
    return [2**k for k in range(hosts.bit_length()) if 2**k < hosts]


def messages(devices: Sequence[jax.Device], here: Devices, group: ProcessGroup) -> Runner:
    """The first device of each host sends to that of another one. A unit is the link on which this host receives."""
    first = [next(device for device in devices if device.process_index == process) for process in group.processes]
    hosts, place = len(first), group.processes.index(group.here)
    mesh, count = Mesh(np.array(first), ("hosts",)), here.sizes.copy // 4
    spread = NamedSharding(mesh, PartitionSpec("hosts"))
    base = bits.ascending(count)

    def shard(index: tuple[slice, ...] | None) -> np.ndarray:
        return base + np.float32((index[0].start or 0) // count if index else 0)

    given = jax.make_array_from_callback((hosts * count,), spread, shard)
    split = functools.partial(
        jax.shard_map, mesh=mesh, in_specs=PartitionSpec("hosts"), out_specs=PartitionSpec("hosts")
    )

    def send(distance: int) -> jax.stages.Wrapped:
        to = [(host, (host + distance) % hosts) for host in range(hosts)]
        return jax.jit(split(lambda x: jax.lax.ppermute(x, "hosts", to)))

    programs = [send(distance) for distance in distances(hosts)]
    arrived = [program(given) for program in programs]
    jax.block_until_ready(arrived)
    senders = [(place - distance) % hosts for distance in distances(hosts)]

    def run() -> list[float]:
        found = []
        for at, program in enumerate(programs):
            group.barrier()

            def call(at: int = at, program: jax.stages.Wrapped = program) -> jax.Array:
                arrived[at] = program(given)
                return arrived[at]

            found.append(device_probes.seconds(call, 2))
        return found

    def check() -> Wrong:
        wrong = []
        for at, (sender, each) in enumerate(zip(senders, arrived, strict=True)):
            (mine,) = each.addressable_shards
            right = bits.on_host(base + np.float32(sender))
            if int(bits.on_device(mine.data, bits.flipped(PAIRS, at))) != right:
                wrong.append((at, "a message between hosts has other bits than were sent"))
        return wrong

    units = tuple(f"{sender}>{place}" for sender in senders)
    return Runner(name=PAIRS, units=units, amount=4.0 * count, run=run, check=check)
