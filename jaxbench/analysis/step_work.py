# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What a compiled step does, where that is less, or other, than what is stated about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from jaxbench.core.schema import StepWork
from jaxbench.levers import PRECISION, SIXTEEN_BITS

A_PART = 0.1  # of the FLOPs: fewer in another format are the exception, not how a step computes
MOSTLY_STILL = 0.5  # of the parameters: a step that moves fewer says so, even if each array changes somewhere
NAMED = 4  # arrays in a sentence
# Where every product is counted, a formula may differ by this factor in either direction: it may leave out small terms.
MISCOUNTED = 1.05
NO_EFFECT = "the {noun} {names} of the batch {verb} no effect on the loss and its gradient"
COMPILED, MODEL = "the compiled step has", "the products of the model have"
DIFFERS = "states {stated} FLOPs per {each}, {what} {found}"
BEYOND = ("masked_flops", "padding_flops")  # facts: FLOPs of an example that a formula leaves out on purpose


@dataclass(frozen=True)
class Stated:
    """The FLOPs that are stated of a step of `batch` examples on `devices`.

    beyond: FLOPs of an example that the formula leaves out on purpose, because they are masked out or only pad. each:
    what the numbers of a sentence are of.
    """

    flops: float
    batch: int
    devices: int
    beyond: float = 0.0
    each: str = "example"

    def contradiction(self, work: StepWork | None) -> str | None:
        """How the counted products differ; "" if they agree, None if some products are unknown."""
        if not self.flops:  # it claims none
            return ""
        if work is None or (work.model_flops is None and not work.all_products_counted):
            return None
        compiled = sum(work.product_flops.values())
        # A compiler may write products with vectors as sums. Its text has all other products that the step does.
        if work.all_products_counted and self.flops > MISCOUNTED * (compiled + work.vector_flops):
            return self._differs(compiled, COMPILED)
        most = self.flops + self.batch * self.beyond
        # On several devices a step may repeat products, and one that computes activations again has more of them. Then
        # only the model's own count shows a formula that is too small.
        if work.model_flops is not None:
            too_many, too_few = self.flops > MISCOUNTED * work.model_flops, MISCOUNTED * most < work.model_flops
            return self._differs(work.model_flops, MODEL) if too_many or too_few else ""
        if self.devices == 1 and not work.recomputes and MISCOUNTED * most < compiled:
            return self._differs(compiled, COMPILED)
        return ""

    def _differs(self, counted: float, what: str) -> str:
        """A clause that compares the stated FLOPs with counted ones."""
        stated, found = (f"{flops / (self.batch or 1):,.0f}" for flops in (self.flops, counted))
        return DIFFERS.format(stated=stated, each=self.each, what=what, found=found)


def sentences(work: StepWork | None, levers: Mapping[str, str] | None = None) -> list[str]:
    """What a reader must know beyond the time of a step, each without a full stop; [] for nothing, or if unknown."""
    if work is None:
        return []
    trains = (levers or {}).get("part") != "inference"  # which reads no label, and has no gradient
    return [
        *(_movement(work) if trains else []),
        *(_idle(work) if trains else []),
        *(_examples(work) if trains else []),
        *([f"the step has {text}"] if (text := products(work, levers)) else []),
    ]


def _movement(work: StepWork) -> list[str]:
    """Sentences on steps in which no parameter moved."""
    found = []
    if work.steps and work.changing_steps == 0:
        return [f"no parameter changed in {work.steps} steps"]
    changing, last = work.changing_steps, work.last_change
    if changing is not None and changing == last < work.steps:
        # It has arrived, or it stops working: from here on no step changes anything.
        found.append(f"parameters changed in the first {changing} of {work.steps} steps only")
    # Steps before the first change may belong to a learning rate that begins at 0, or to a loss scale that overflows.
    elif changing is not None and changing < work.steps - work.first_change + 1:
        found.append(
            f"parameters changed in {changing} of {work.steps} steps: the time is a mean of two kinds of steps"
        )
    if work.still_arrays:
        found.append(
            f"{len(work.still_arrays)} of {work.parameter_arrays} parameter arrays, {_share(work.still_share or 0.0)} "
            f"of the parameters, never changed: {_first_names(work.still_arrays)}"
        )
    elif work.moved_share is not None and work.moved_share < 1 - MOSTLY_STILL:
        found.append(f"{_share(1 - work.moved_share)} of the parameters never changed in {work.steps} steps")
    if work.frozen_arrays:
        arrays = "1 parameter array" if work.frozen_arrays == 1 else f"{work.frozen_arrays} parameter arrays"
        found.append(f"the lever freeze holds {arrays}, {_share(work.frozen_share)} of the parameters")
    return found


def _idle(work: StepWork) -> list[str]:
    """A sentence on fields of the batch that have no effect."""
    if work.reads_batch is False or not work.idle_fields:  # the check "batch" says the first
        return []
    noun, verb = ("field", "has") if len(work.idle_fields) == 1 else ("fields", "have")
    return [NO_EFFECT.format(noun=noun, names=_first_names(work.idle_fields), verb=verb)]


def _examples(work: StepWork) -> list[str]:
    """A sentence on examples without a gradient."""
    if work.examples_with_gradient is None or work.examples_with_gradient == work.examples:
        return []
    # At least: an example without one for its values may have got one with the values that replaced them.
    without = work.examples - work.examples_with_gradient
    return [f"at least {without} of {work.examples} examples have no gradient"]


def counted(work: StepWork | None) -> float | None:
    """FLOPs of the products of a step, all devices; None: unknown."""
    return sum(work.product_flops.values()) if work is not None and work.all_products_counted else None


def formats(work: StepWork | None) -> dict[str, float]:
    """The share of the FLOPs of products by number format, the largest first; {} if unknown or without products."""
    flops = work.product_flops if work is not None else {}
    total = sum(flops.values())
    return {dtype: part / total for dtype, part in sorted(flops.items(), key=lambda each: -each[1]) if total}


def products(work: StepWork | None, levers: Mapping[str, str] | None) -> str:
    """ "bfloat16 products", if a part of the products has another format than the lever `precision` says; else ""."""
    promised = PRECISION.of(dict(levers or {}))
    expected = SIXTEEN_BITS.get(promised, "float32")
    shares = {dtype: share for dtype, share in formats(work).items() if share >= A_PART}
    if not shares or {*shares} == {expected}:
        return ""
    if len(shares) == 1:
        return f"{next(iter(shares))} products"
    # A model keeps a few small products in float32 on purpose, and a check says whether 16 bits are mostly used.
    if promised in SIXTEEN_BITS and next(iter(shares)) == expected:
        return ""
    return " and ".join(f"{100 * share:.0f} % {dtype}" for dtype, share in shares.items()) + " products"


def _share(part: float) -> str:
    """A share that is not all is never printed as 100 %, and one that is not nothing never as 0 %."""
    percent = 100 * part
    return f"{percent:.0f} %" if percent in (0.0, 100.0) else f"{min(max(percent, 0.1), 99.9):.1f} %"


def _first_names(paths: tuple[str, ...]) -> str:
    more = f" and {len(paths) - NAMED} more" if len(paths) > NAMED else ""
    return ", ".join(paths[:NAMED]) + more
