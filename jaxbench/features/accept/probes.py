# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The probes of an acceptance test: their names, what they are measured on, and the words of --probes. Without jax."""

from __future__ import annotations

from collections.abc import Sequence

from jaxbench.errors import UserError, did_you_mean
from jaxbench.features.accept.probe import BYTES, FLOPS, RATE, Probe

# Probes that read facts instead of measuring time.
DOCTOR, SOFTWARE, HEAT = "doctor", "software", "heat"
PROBES = {
    probe.name: probe
    for probe in (
        Probe(name="product_bf16", title="bf16 product", scope="device", unit=FLOPS, group="product"),
        Probe(name="product_f32", title="f32 product", scope="device", unit=FLOPS, group="product"),
        Probe(name="together", title="f32 product, all at once", scope="device", unit=FLOPS, group="product"),
        Probe(name="triad", title="triad", scope="device", unit=BYTES),
        Probe(name="copy_in", title="host to device", scope="device", unit=BYTES, group="copy"),
        Probe(name="copy_out", title="device to host", scope="device", unit=BYTES, group="copy"),
        Probe(name="start", title="start latency", scope="device", unit=RATE, loose=True),
        Probe(name="gpt", title="gpt step", scope="device", unit=RATE),
        Probe(name="pairs", title="pairs of devices", scope="pair", unit=BYTES),
        Probe(name="allreduce_1", title="all-reduce 1 MiB", scope="host", unit=BYTES, group="allreduce", loose=True),
        Probe(name="allreduce_256", title="all-reduce 256 MiB", scope="host", unit=BYTES, group="allreduce"),
        Probe(name="cores_alone", title="cores alone", scope="core", unit=RATE, group="cores", loose=True),
        Probe(name="cores_together", title="cores together", scope="core", unit=RATE, group="cores", loose=True),
        Probe(name="input", title="input from disk", scope="host", unit=BYTES, loose=True, default=False),
        Probe(
            name="hosts_allreduce_1",
            title="all-reduce 1 MiB over hosts",
            scope="hosts",
            unit=BYTES,
            group="hosts",
            loose=True,
        ),
        Probe(
            name="hosts_allreduce_256", title="all-reduce 256 MiB over hosts", scope="hosts", unit=BYTES, group="hosts"
        ),
        Probe(name="host_pairs", title="pairs of hosts", scope="host pair", unit=BYTES, group="hosts"),
    )
}
FACTS = {HEAT: "first against last third", DOCTOR: "doctor", SOFTWARE: "software"}
TITLES = {**{name: probe.title for name, probe in PROBES.items()}, **FACTS}


def chosen(text: str) -> tuple[str, ...]:
    """The probes of --probes, such as "product,triad,doctor"; "": the default ones. Raises UserError."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not words:
        return (*(name for name, probe in PROBES.items() if probe.default), *FACTS)
    groups = {probe.group for probe in PROBES.values()} - {""}
    wanted: set[str] = set()
    for word in words:
        if word not in TITLES and word not in groups:
            raise UserError(f"--probes={text} names '{word}': {did_you_mean(word, [*TITLES, *sorted(groups)])}")
        wanted |= {name for name, probe in PROBES.items() if word in (name, probe.group)} | ({word} & FACTS.keys())
    if HEAT in wanted:  # it is read from the steps
        wanted.add("gpt")
    return tuple(name for name in TITLES if name in wanted)


def timed(names: Sequence[str], *, over_hosts: bool) -> tuple[str, ...]:
    """Those that measure time, within hosts or over them."""
    return tuple(name for name in names if name in PROBES and PROBES[name].over_hosts == over_hosts)
