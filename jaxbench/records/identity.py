# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Whether two manifests describe the same machine, and how they differ.

`machine/manifest.py` gathers the facts of a machine.

Two machines are the same if all facts that both manifests know are equal. A fact can be unknown because the manifest is
older, or because the system does not report it.

How fast a machine is now is no such fact. A core of a virtual machine may do the same work at half its speed for
minutes, because of another tenant of the physical core. So a different speed, or another GPU of the same kind, is
stated next to a result (`cautions`) and refuses nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, cast

from jaxbench.records.documents import flatten

KERNEL = "identity.kernel"  # the only fact that an update of the same machine changes
FACTS = {  # fields of a manifest that identify a machine, with their names in sentences
    "platform": "platform",
    "device_kind": "device kind",
    "device_kinds": "device kinds",
    "devices": "devices",
    "cores": "usable cores",
    "cpu_model": "processor",
    "cache_bytes": "bytes of last-level cache",
    "identity.vendor": "vendor",
    "identity.family": "processor family",
    "identity.model": "processor model",
    "identity.stepping": "stepping",
    "identity.instruction_sets": "instruction sets that the other lacks",
    "identity.caches": "caches",
    "identity.nominal_hz": "nominal frequency in Hz",
    "memory_bytes": "bytes of memory",
    KERNEL: "kernel",
}
FIELDS = tuple(dict.fromkeys(name.partition(".")[0] for name in FACTS))  # the manifest's keys that hold them
# Relative. A virtual machine measures its nominal clock, so that varies. A hypervisor may take back a part of its
# memory.
TOLERANCE = {"identity.nominal_hz": 0.02, "memory_bytes": 0.5}
SPEED = "identity.product_s"  # seconds of the reference product: how fast the machine is now. No fact of identity
SAME_SPEED = 0.15  # relative: smaller differences of the reference product are its own noise
Differences = dict[str, tuple[object, object]]


def differences(then: Mapping[str, object], now: Mapping[str, object]) -> Differences:
    """{field: (value in `then`, value in `now`)} of the facts by which two machines differ; {} for the same machine.

    then, now: manifests, or the `machine` entry of a machine profile. CPU devices are created on demand, so their
    number is ignored.
    """
    left, right = (flatten({name: about[name] for name in FIELDS if name in about}) for about in (then, now))
    ignored = {"devices"} if left.get("platform") == right.get("platform") == "cpu" else set()
    found: Differences = {}
    for name in FACTS.keys() - ignored:
        a, b = left.get(name), right.get(name)
        if a is None or b is None or a == b:  # an unknown fact proves no difference
            continue
        if name in TOLERANCE and max(a, b) <= (1 + TOLERANCE[name]) * min(a, b):
            continue
        if name == "identity.instruction_sets":  # the words of each list that the other lacks
            a, b = (" ".join(sorted(words)) or "none" for words in ({*a} - {*b}, {*b} - {*a}))
        found[name] = (a, b)
    return {name: found[name] for name in FACTS if name in found}  # a set has no order, and sentences need one


def hardware(then: Mapping[str, object], now: Mapping[str, object]) -> Differences:
    """`differences` without the kernel, for facts that a system update does not invalidate."""
    return {name: both for name, both in differences(then, now).items() if name != KERNEL}


def sentence(found: Differences) -> str:
    """Both values of each difference: "processor 'A', here 'B'; usable cores 2, here 4"."""
    return "; ".join(f"{FACTS[name]} {a!r}, here {b!r}" for name, (a, b) in found.items())


def refused(found: Differences) -> str:
    """A clause for a result that may not continue: "on another machine (...)", or "with another kernel (...)"."""
    where = "with another kernel" if found.keys() == {KERNEL} else "on another machine"
    return f"{where} ({sentence(found)})"


def _identity(about: Mapping[str, object]) -> Mapping[str, Any]:
    """The entry `identity` of a manifest; {} in older ones."""
    return cast(Mapping[str, Any], about.get("identity") or {})


def slower(then: Mapping[str, object], now: Mapping[str, object]) -> float:
    """How many times as long the reference product took in `now` as in `then`. NaN: unknown, or timed with different
    versions of its library."""
    left, right = _identity(then), _identity(now)
    a, b = left.get("product_s"), right.get("product_s")
    if not a or not b or left.get("product_by") != right.get("product_by"):
        return math.nan
    return float(b) / float(a)


def other_speed(then: Mapping[str, object], now: Mapping[str, object]) -> bool:
    """Whether the machine ran at another speed, beyond the noise of the reference product."""
    times = slower(then, now)
    return max(times, 1 / times) > 1 + SAME_SPEED  # False for NaN


def cautions(then: Mapping[str, object], now: Mapping[str, object], first: str, second: str) -> list[str]:
    """Sentences, without their full stops, on what may explain a difference in time between two manifests of one
    machine: its speed, and which of its GPUs it used.

    first, second: when the two were measured, such as "in A" and "in B".
    """
    found, times = [], slower(then, now)
    if other_speed(then, now):
        late, early = (second, first) if times > 1 else (first, second)
        ran = "a reference product ran" if differences(then, now) else "the same machine ran a reference product"
        before, after = (f"{_identity(about)['product_s']:.3g} s" for about in (then, now))
        found.append(
            f"{ran} {max(times, 1 / times):.1f} times slower {late} than {early} ({before} {first}, {after} {second}), "
            "which may explain a difference in time"
        )
    a, b = (_identity(about).get("gpus") for about in (then, now))
    if a and b and not {*a} & {*b}:
        found.append(f"the GPUs are others of the same kind ({', '.join(a)} {first}, {', '.join(b)} {second})")
    return found


def machine_name(machine: Mapping[str, object]) -> str:
    """The accelerator or the processor of a manifest, with the number of devices or cores."""
    if machine.get("platform") != "cpu":
        return f"{machine.get('devices', '?')} x {machine.get('device_kind')}"
    name, cores = machine.get("cpu_model") or "CPU", machine.get("cores")
    return f"{name}, {cores} core{'s' if cores != 1 else ''}" if cores else str(name)


def changes(then: object, now: object) -> str:
    """Each field that differs: "jax 0.10.1, now 0.10.2; flax 0.12, now none". Both values if they have no fields."""
    if not isinstance(then, Mapping) or not isinstance(now, Mapping):
        return f"{then}, now {now}"
    left, right = flatten(dict(then)), flatten(dict(now))
    names = [name for name in {**left, **right} if left.get(name) != right.get(name)]
    return "; ".join(f"{name} {left.get(name, 'none')}, now {right.get(name, 'none')}" for name in names)


def commit(git: Mapping[str, object]) -> str:
    """The commit of a manifest's `git` entry: "commit 1a2b3c4d5e6f with changes"."""
    known = f"commit {str(git.get('commit', ''))[:12]}{' with changes' if git.get('dirty') else ''}"
    return known if git else "an installed package"


def cannot_tell(then: Mapping[str, object], now: Mapping[str, object]) -> str:
    """A sentence with the remaining doubt about two machines that look the same; "" if both have an identity."""
    if "identity" in then and "identity" in now:
        return ""
    return (
        "machine: one manifest has no identity (processor family, instruction sets, caches), so "
        "another processor of the same name would not be noticed"
    )
