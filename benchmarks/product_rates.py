# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Compares the forecast times of single products on a GPU with a published sweep.

    python -m benchmarks.product_rates

The sweep (`jaxbench/catalog/published/xla_products.csv`) is the performance table in XLA's source: bfloat16 products on
one GPU, each alone, so the power limit does not slow them as it slows a training. The rate of an endless product is
therefore the one with which the largest product of the sweep is right. What is compared is how time depends on size.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from jaxbench.catalog import published, targets
from jaxbench.features.forecast import work
from jaxbench.hlo.operations import ProductSize

DEVICES = ("h100", "b200")  # names of targets, and of devices in the sweep
# FLOPs at which the table's rows begin: 256 x 256 x 256, 1024 x 1024 x 512, 2048 x 2048 x 1024, 4096 x 4096 x 1024
_FROM = (0.0, 1e9, 8e9, 3e10)


@dataclass(frozen=True)
class Product:
    """A measured product, and its forecast time in seconds."""

    device: str
    flops: float
    measured_s: float
    forecast_s: float

    @property
    def error(self) -> float:
        return abs(self.forecast_s / self.measured_s - 1)


def products(device: str) -> list[Product]:
    """The products that were measured on a device."""
    sweep = [row for row in published.read("xla_products").frame.to_dict("records") if row["device"] == device]
    sizes = [ProductSize(*(int(row[name]) for name in ("batch", "rows", "columns", "contracted"))) for row in sweep]
    flops = [2.0 * size.batch * size.rows * size.columns * size.contracted for size in sizes]
    measured = [each / (1e12 * row["tflops"]) for each, row in zip(flops, sweep, strict=True)]
    cores = targets.cores(targets.parse(f"{device}:1").device_kind)
    largest = max(range(len(sweep)), key=lambda at: sweep[at]["tflops"])
    slow_s = work.product_s(sizes[largest], 1e15, cores) - work.PRODUCT_S
    rate = 1e15 * slow_s / (measured[largest] - work.PRODUCT_S)
    forecast = [work.product_s(size, rate, cores) for size in sizes]
    return [Product(device, *each) for each in zip(flops, measured, forecast, strict=True)]


def rows(found: Sequence[Product]) -> list[tuple[float, int, float, float]]:
    """(FLOPs from, products, median error, error that nine in ten do not exceed), by size."""
    made = []
    for low, high in zip(_FROM, (*_FROM[1:], float("inf")), strict=True):
        errors = sorted(each.error for each in found if low <= each.flops < high)
        made.append((low, len(errors), statistics.median(errors), errors[int(0.9 * (len(errors) - 1))]))
    return made


def main() -> None:
    table = Table("GPU", "from FLOPs", "products", "median error", "nine in ten below", title="Products by size")
    for device in DEVICES:
        for low, count, median, most in rows(products(device)):
            table.add_row(device, f"{low:.0e}", str(count), f"{100 * median:.0f} %", f"{100 * most:.0f} %")
    Console(width=100, markup=False, highlight=False).print(table)


if __name__ == "__main__":
    main()
