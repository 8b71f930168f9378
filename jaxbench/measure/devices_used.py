# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Whether a step runs on the devices that it was given, and each of them has its own share of the work.

The check reads the shardings of the compiled step's inputs, which every call enforces. It does not trust the strategy:
a strategy that is given two devices and uses one sends nothing, which is what one device is expected to send.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax

from jaxbench.records.schema import Collective, Verdict
from jaxbench.workloads.base import PyTree


def judge(
    asked: Sequence[jax.Device], parts: int, state: Any, batch: PyTree, collectives: Sequence[Collective]
) -> Verdict:
    """The verdict "devices".

    asked: the devices of the point. parts: the number of parts into which their mesh splits the batch. state, batch:
    the inputs of the compiled step, as shapes with shardings. collectives: the counts of the step.
    """
    inputs, count = jax.tree.leaves((state, batch)), len(asked)
    used = {device for leaf in inputs for device in leaf.sharding.device_set}
    if used != {*asked}:
        idle = [str(device) for device in asked if device not in used]
        found = f"the compiled step uses {len(used)} devices, NOT the {count} that were asked for"
        return _verdict(found + (f": '{idle[0]}' is idle" if idle else ""), idle=max(1, len(idle)))
    if partial := [leaf for leaf in inputs if leaf.sharding.device_set != used]:
        return _verdict(f"an input of shape {partial[0].shape} does NOT lie on all {count} devices", idle=1)
    if wrong := [lies for leaf in jax.tree.leaves(batch) if (lies := _parts(leaf)) != parts]:
        return _verdict(f"the batch lies in {wrong[0]} parts on {count} devices, NOT in {parts}", idle=1)
    split = any(_parts(leaf) > 1 for leaf in jax.tree.leaves(state.params))
    # More devices than parts of the batch is legal only if they split the model, or exchange results.
    if count > parts and not split and not any(each.elements for each in collectives):
        same = "hold the same examples and the same parameters and send nothing"
        return _verdict(f"the {count} devices {same}, so they do NOT share the work", idle=count - parts)
    share = f", each with 1/{parts} of the batch" if parts > 1 else ", each with a part of the model" if split else ""
    return _verdict(f"the compiled step uses the {count} devices asked for{share}", idle=0)


def _parts(leaf: Any) -> int:
    """The number of different parts of an array that its devices hold."""
    indices = leaf.sharding.devices_indices_map(leaf.shape)
    return len({str(index) for index in indices.values()})


def _verdict(reason: str, *, idle: int) -> Verdict:
    return Verdict(name="devices", ok=not idle, reason=reason, value=idle, limit=0)
