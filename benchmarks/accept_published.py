# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Which published machines would pass `jaxbench accept` at a margin of 5 %?

Each machine is compared with another publication about the same kind of device. A published number has no interval, so
it passes or fails by its value alone.

Run: python -m benchmarks.accept_published [--margin=0.05]
Prints the table of docs/ACCEPT.md.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from jaxbench.catalog import hardware, published

# (device kind of the catalogue, row of the published products): the peak and share of ceilings.csv are of sustained
# work.
PRODUCTS = {
    "NVIDIA A100-SXM4-80GB": "A100 SXM",
    "NVIDIA H200": "H100 SXM (H200 same)",
    "NVIDIA B200": "B200 SXM",
}
GIB_8 = 2**33


@dataclass(frozen=True)
class Compared:
    """A published machine and its reference, in the same unit."""

    machine: str
    probe: str
    value: float
    reference: float
    unit: str

    @property
    def share(self) -> float:
        return self.value / self.reference


def products() -> Iterator[Compared]:
    """Sustained products of 8192 rows, against the best product that was found in a search over shapes."""
    best = published.read("mamf_bf16").frame.set_index("device")["measured"]
    for kind, name in PRODUCTS.items():
        peak = hardware.find(kind)
        rate, share = peak and peak.rate("bfloat16"), peak and hardware.ceiling(peak.name, "product_share")
        if rate and share:
            sustained = rate.flop_per_s * share / 1e12
            yield Compared(f"{kind}, sustained", "bf16 product", sustained, float(best[name]), "TFLOP/s")


def links() -> Iterator[Compared]:
    """All-reduces of 8 GiB over the GPUs of a node, of one publication against another of the same authors."""
    ramp = published.read("allreduce_sharp_ramp").frame.set_index("gpus")
    series = published.allreduce()
    for chip in ("h200", "b200"):
        reference = float(series[f"{chip}x8"][GIB_8]) / 1e9
        for way, words in (("default", "8 GPUs"), ("nvls_off", "8 GPUs, sums in the switch off")):
            value = float(ramp[f"{chip}_{way}"][8])
            yield Compared(f"{chip.upper()}, {words}", "all-reduce 8 GiB", value, reference, "GB/s")
    four = float(series["b200x8x4nodes"][GIB_8]) / 1e9
    yield Compared("B200, 4 nodes, against one", "all-reduce 8 GiB", four, float(series["b200x8"][GIB_8]) / 1e9, "GB/s")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--margin", type=float, default=0.05)
    asked = parser.parse_args()
    lines = ["| machine | probe | published | reference | share | at the margin |", "|---|---|---|---|---|---|"]
    for each in (*products(), *links()):
        verdict = "passes" if each.share > 1 - asked.margin else "fails"
        numbers = f"{each.value:.0f} {each.unit} | {each.reference:.0f} {each.unit} | {100 * each.share:.1f} %"
        lines.append(f"| {each.machine} | {each.probe} | {numbers} | {verdict} |")
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
