# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The verdict on the arrays of a state that are no parameters, and on whole numbers.

An optimizer's running means reveal a wrong gradient scale that Adam hides from the parameters. Averages, batch
statistics and counts reveal a device that sees its own part of the batch only.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

import numpy as np

from jaxbench.core.schema import Verdict
from jaxbench.features.own_step.distances import (
    Compared,
    Limits,
    aligned,
    compared,
    copies_apart,
    finite,
    has_copies,
    limit_of,
    listed,
    other_start,
)
from jaxbench.features.own_step.program import OwnProgram
from jaxbench.features.own_step.reference import Movement, OwnReference, everything, is_key, is_whole, norm
from jaxbench.measure.check import unchecked


@dataclass(frozen=True)
class Others:
    """The arrays that are compared, and the paths of those that are not, by reason."""

    each: list[Compared]
    counts: list[str]  # whole numbers of each device that add up to those of one device
    own: list[str]  # other arrays of each device, such as batch statistics and keys
    starts: list[str]  # arrays with other first values, which move otherwise

    @property
    def moving(self) -> list[Compared]:
        return [x for x in self.each if x.norm or x.apart]

    def notes(self) -> str:
        """What is not compared, as clauses."""
        rounding = [x.path for x in self.moving if x.by_rounding]
        still = len(self.each) - len(self.moving)
        notes = [
            f"{listed(self.counts)} count the part of each device and add up to the same" if self.counts else "",
            f"{listed(self.own)} differ from device to device and are not compared" if self.own else "",
            f"{listed(rounding)} moved by rounding alone" if rounding else "",
            f"{still} did not move" if still and self.moving else "",
        ]
        return "".join(f"; {note}" for note in notes if note)


def judge(
    found: Movement, expected: OwnReference, program: OwnProgram, *, platform: str, few: str
) -> tuple[Verdict, ...]:
    """The verdict "state"; () without arrays that move."""
    devices = program.mesh.size
    others = _others(found, expected, program, Limits.of(expected, platform))
    if others.starts:
        reason = (
            f"init gives other values of {listed(others.starts)} on {devices} devices than on {few}, and they move "
        )
        reason += f"otherwise: make them by the same numbers, then place them{others.notes()}"
        return (dataclasses.replace(unchecked(reason), name="state"),)
    if bad := [x for x in others.moving if not x.ok]:
        worst = max(bad, key=lambda x: (x.share if math.isfinite(x.share) else math.inf, x.norm))
        reason = _wrong(worst, found, expected, devices, few)
        if len(bad) > 1:
            reason += f", and {len(bad) - 1} more of {len(others.moving)} other arrays of the state"
        value, limit = finite(worst.share), limit_of(worst)
        return (Verdict(name="state", ok=False, reason=f"{reason}{others.notes()}", value=value, limit=limit),)
    if copies := copies_apart(found, others.moving):
        return (Verdict(name="state", ok=False, reason=f"{copies}{others.notes()}"),)
    return (_right(others, expected, few),) if others.moving or others.own or others.counts else ()


def _others(found: Movement, expected: OwnReference, program: OwnProgram, limits: Limits) -> Others:
    """Compares the arrays of the state that are no parameters with those of one device."""
    devices, of = program.mesh.size, expected.devices
    right = {path: x for path, x in expected.end.items() if path not in expected.parameters or is_whole(x)}
    ends, shapes, own = aligned(found.end, right, devices, of)
    starts, _, _ = aligned(found.start, {path: expected.start[path] for path in right}, devices, of)
    left, counts, each, other_starts = {*shapes, *own}, [], [], []
    arrays = everything(program.first)
    for path, want in right.items():
        # Devices draw from keys of their own, which is no error.
        key = is_key(program, path, arrays[path]) and not (path in ends and np.array_equal(ends[path], want))
        if not key and has_copies(found.end[path], want, devices, of) and _adds_up(found, expected, path):
            counts.append(path)
            left.discard(path)
        elif key or path in left or path not in starts:  # devices may also start with numbers of their own
            left.add(path)
        else:
            one = compared(path, Movement({path: starts[path]}, {path: ends[path]}).moved(path), expected, limits)
            if not one.ok and other_start({path: starts[path]}, expected):
                other_starts.append(path)
            else:
                each.append(one)
    return Others(each, counts, [path for path in right if path in left], other_starts)


def _adds_up(found: Movement, expected: OwnReference, path: str) -> bool:
    """Whether whole numbers of each device, on the leading axis of `pmap`, add up to those of the reference, and are
    not simply the same."""
    x, right = found.moved(path), expected.moved(path)
    if not np.any(right) or not (is_whole(found.end[path]) or np.array_equal(x, np.round(x))):
        return False
    return np.array_equal(x.sum(0), right.sum(0)) and not np.array_equal(x[0], right[0])


def _right(others: Others, expected: OwnReference, few: str) -> Verdict:
    """The verdict on these arrays if all of them moved as on one device."""
    compared = [x for x in others.moving if not x.by_rounding]
    floats = [x for x in compared if not is_whole(expected.end[x.path])]
    whole = [x for x in compared if is_whole(expected.end[x.path])]
    parts, value, limit = [], None, None
    if floats:
        worst = max(floats, key=lambda x: x.excess)
        value, limit = worst.share if worst.norm else 0.0, limit_of(worst)
        one = f"the movement of {len(floats)} other array{'s' if len(floats) > 1 else ''} of the state is"
        parts.append(
            f"{one} that on {few} (a wrong gradient scale gives 1 or more); the worst array, '{worst.path}', "
            f"{value:.1e}, within {limit:.0e}"
        )
    if equal := [x for x in whole if not x.apart]:
        arrays = "an array of whole numbers is" if len(equal) == 1 else f"{len(equal)} arrays of whole numbers are"
        parts.append(f"{arrays} equal")
    if codes := [x.path for x in whole if x.apart]:
        parts.append(f"{listed(codes)}, of whole numbers, within rounding")
    reason = f"{'; '.join(parts) or 'no other array of the state was compared'}{others.notes()}"
    return Verdict(name="state", ok=True, reason=reason, value=value, limit=limit)


def _wrong(worst: Compared, found: Movement, expected: OwnReference, devices: int, few: str) -> str:
    """A clause on an array that moves otherwise than on one device."""
    path, right, x = worst.path, expected.moved(worst.path), found.moved(worst.path)
    here, there = f"on {devices} devices", f"on {few}"
    if has_copies(found.end[path], expected.end[path], devices, expected.devices):
        x = np.broadcast_to(x[:1], right.shape)
    if is_whole(expected.end[path]):
        differ = x != right
        at = int(np.argmax(differ))
        # By movement: the ends of copies have another shape.
        now, then = (expected.start[path].reshape(-1)[at].astype(np.int64) + m.reshape(-1)[at] for m in (x, right))
        which = "" if right.size == 1 else f"in {int(differ.sum()):,} of {right.size:,} whole numbers, such as "
        why = "and whole numbers must be equal"
        if expected.devices == 1 and np.array_equal(x * devices, right):
            why = "because each device counts its own part only: sum it over the devices"
        return f"'{path}' differs: {which}{now} {here} and {then} {there}, {why}"
    if not norm(x) and worst.norm:
        return f"'{path}' does NOT move {here}, and {there} it does"
    if not worst.norm:
        return f"'{path}' moves {here}, and {there} it does NOT"
    return (
        f"the movement of '{path}', which is no parameter, is {worst.share:.1e} (relative L2) from that {there}, NOT "
        f"within {limit_of(worst):.0e} (a wrong gradient scale gives 1 or more)"
    )
