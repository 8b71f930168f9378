# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""How far an array moves from where the reference moves it, and how far it may.

The movement is compared, not the values: with a warmed-up learning rate, or a slow average, the values hardly change
whatever a step does. Each array is compared with its own movement, so that a large array hides no small one. Whole
numbers must be equal, unless rounding decides them, as it decides the codes of a quantized array.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from jaxbench.features.own_step.reference import Arrays, Movement, OwnReference, distance, is_whole, norm
from jaxbench.measure.check import OPTIMIZER_STATE, ROUNDING, SHARE

WITHIN = {"cpu": 1e-3}  # of the movement of all parameters, relative: six public trainers were within 3e-4
WITHIN_ELSEWHERE = 3e-2  # an accelerator computes float32 products in TF32 or bfloat16 by default
EACH = {"cpu": OPTIMIZER_STATE}  # of the movement of one array; elsewhere SHARE
COARSE_SHARE = 0.25  # instead of SHARE, for a step with 16-bit products: a wrong gradient scale gives 1 or more
# An array that rounding alone moves may be this many times its rounding away, divided by the root of the format's
# spacing. A sum of zero may round to nearly nothing on one device, and the sums of parts not; and Adam squares it.
BEYOND = 10
SAME_START = 1e-6  # relative: the same numbers, but perhaps drawn or cast by another program
FEW = 3  # paths in a sentence


@dataclass(frozen=True)
class Limits:
    """What the arrays of a step may differ by, relative to their movement.

    each: one array. share: the largest rounding of an array that is not moved by rounding alone. whole: all parameters.
    most: all parameters, if rounding excuses more than `whole`. beyond: an array that rounding alone moves, relative to
    its rounding.
    """

    each: float
    share: float
    whole: float
    most: float
    beyond: float

    @classmethod
    def of(cls, expected: OwnReference, platform: str) -> Limits:
        share = COARSE_SHARE if expected.by else SHARE
        most = ROUNDING * COARSE_SHARE if expected.by else SHARE
        beyond = BEYOND / math.sqrt(expected.spacing_of_format)
        return cls(EACH.get(platform, SHARE), share, WITHIN.get(platform, WITHIN_ELSEWHERE), most, beyond)


@dataclass(frozen=True)
class Compared:
    """One array. apart, norm, noise: norms of the distance to the reference, of its movement, and of its rounding.

    allowed: what `apart` may be. by_rounding: rounding moves it as much as its update does, so only a gross error
    shows.
    """

    path: str
    apart: float
    norm: float
    noise: float
    allowed: float
    by_rounding: bool = False

    @property
    def ok(self) -> bool:
        return self.apart <= self.allowed  # False for NaN

    @property
    def share(self) -> float:
        """The distance relative to the movement."""
        return self.apart / self.norm if self.norm else math.inf if self.apart else 0.0

    @property
    def excess(self) -> float:
        """How many times the limit; NaN counts as infinite."""
        if self.ok:
            return self.apart / self.allowed if self.allowed else 0.0
        return self.apart / self.allowed if self.allowed and math.isfinite(self.apart) else math.inf


def compared(path: str, moved: np.ndarray, expected: OwnReference, limits: Limits) -> Compared:
    """One array. moved: in the shape of the reference."""
    right, noise, spacing = expected.moved(path), expected.noise[path], expected.spacing.get(path, 0.0)
    apart, size = distance(moved, right), norm(right)
    if is_whole(expected.end[path]):
        return Compared(path, apart, size, noise, noise)
    if noise > limits.share * size:
        return Compared(path, apart, size, noise, max(limits.beyond * max(noise, size), spacing), by_rounding=True)
    # A change of one unit in the last place of one number is rounding, too.
    return Compared(path, apart, size, noise, max(limits.each * size, ROUNDING * noise, spacing))


def aligned(found: Arrays, like: Arrays, devices: int, of: int) -> tuple[Arrays, list[str], list[str]]:
    """(the arrays in the shapes of the reference on `of` devices, the paths of those with another shape, of those that
    differ from device to device).

    A pmapped step has a leading axis of one copy for each device.
    """
    aligned: Arrays = {}
    shapes, own = [], []
    for path, want in like.items():
        x = found[path]
        if x.shape == want.shape:
            aligned[path] = x
        elif not has_copies(x, want, devices, of):
            shapes.append(path)
        elif all(np.array_equal(x[0], copy, equal_nan=x.dtype.kind in "fc") for copy in x[1:]):
            aligned[path] = np.broadcast_to(x[:1], want.shape)
        else:
            own.append(path)
    return aligned, shapes, own


def has_copies(x: np.ndarray, want: np.ndarray, devices: int, of: int) -> bool:
    """Whether an array has the leading axis of devices that `pmap` maps over."""
    return x.shape != want.shape and (devices, *want.shape[1:]) == x.shape and want.shape[:1] == (of,)


def other_start(start: Arrays, expected: OwnReference) -> tuple[str, float] | None:
    """(the path of the parameter that starts farthest from that of the reference, how far, relative) if that is far."""
    apart = {path: distance(x, expected.start[path]) / (norm(expected.start[path]) or 1) for path, x in start.items()}
    path = max(apart, key=apart.__getitem__, default="")
    return (path, apart[path]) if path and apart[path] > SAME_START else None


def listed(paths: Iterable[str]) -> str:
    """ "'a', 'b', 'c' and 4 more"."""
    names = [*paths]
    more = f" and {len(names) - FEW} more" if len(names) > FEW else ""
    return f"{', '.join(map(repr, names[:FEW]))}{more}"


def finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def limit_of(one: Compared) -> float:
    """The limit of an array, relative to its movement."""
    return one.allowed / one.norm if one.norm else 0.0


def worst_of(each: Iterable[Compared]) -> str:
    """ "'path', 1.2e-07": the array that is farthest, relative to its movement."""
    worst = max(each, key=lambda x: math.inf if math.isnan(x.share) else x.share)
    return f"'{worst.path}', {worst.share:.1e}"


def copies_apart(found: Movement, each: Iterable[Compared]) -> str:
    """A clause on the array that the devices hold different copies of, although it is replicated; "" without one."""
    for one in each:
        if found.copies.get(one.path, 0.0) > one.allowed:
            return f"the devices hold different copies of '{one.path}', which is replicated: is it averaged over them?"
    return ""
