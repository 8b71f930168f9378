# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Times of products and attention kernels by size, against published measurements of single kernels."""

from __future__ import annotations

import pytest

from benchmarks import product_rates
from jaxbench.catalog import hardware, targets
from jaxbench.features.forecast import work
from jaxbench.hlo import operations
from jaxbench.hlo.module import parse
from jaxbench.hlo.operations import ProductSize

RATE, CORES = 750e12, 132


@pytest.mark.parametrize(("device", "median", "most"), [("h100", 0.06, 0.12), ("b200", 0.09, 0.18)])
def test_products_take_what_the_published_sweep_measured(device, median, most):
    for low, count, middle, nine_in_ten in product_rates.rows(product_rates.products(device)):
        assert count >= 60 and middle < median and nine_in_ten < most, f"from {low:g} FLOPs"


def test_a_large_product_reaches_the_rate_and_a_short_or_ragged_one_does_not():
    def reached(*sides: int) -> float:
        batch, rows, columns, contracted = sides
        seconds = work.product_s(ProductSize(*sides), RATE, CORES)
        return 2 * batch * rows * columns * contracted / seconds / RATE

    assert 0.97 < reached(1, 16384, 16384, 32768) < 1.0
    assert reached(1, 16384, 4096, 4096) < reached(1, 16384, 4096, 16384)
    assert reached(1, 256, 256, 256) < 0.02
    full, ragged = reached(1, 128 * 132, 256, 8192), reached(1, 128 * 133, 256, 8192)  # one tile more than the GPU has
    assert ragged < 0.7 * full
    assert reached(1, 4096, 512, 1024) == pytest.approx(reached(1, 512, 4096, 1024))
    assert reached(8, 512, 512, 512) > 4 * reached(1, 512, 512, 512)


def test_attention_is_as_measured_and_interpolated_between():
    at = work.attention_factor
    assert at("fa2", "forward", 128, 2048) == 1.0
    assert at("cudnn", "forward", 128, 4096) == pytest.approx(518 / 298)
    assert at("fa2", "backward", 64, 1024) == pytest.approx(238 / 298)
    assert at("fa2", "forward", 128, 64) == at("fa2", "forward", 128, 512)
    assert at("cudnn", "backward", 256, 2048) == at("cudnn", "backward", 128, 2048), "not measured: the nearest"
    assert at("fa2", "forward", 64, 2048) < at("fa2", "forward", 96, 2048) < at("fa2", "forward", 128, 2048)
    assert 298 / 298 < at("fa2", "forward", 128, 3000) < 319 / 298


PRODUCTS = """HloModule m

ENTRY %main (a: bf16[4,512,256], b: bf16[4,256,128]) -> bf16[4,512,128] {
  %a = bf16[4,512,256]{2,1,0} parameter(0)
  %b = bf16[4,256,128]{2,1,0} parameter(1)
  %dot = bf16[4,512,128]{2,1,0} dot(%a, %b), lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={1}
  %call = bf16[4,512,128]{2,1,0} custom-call(%a, %b), custom_call_target="__cublas$gemm", backend_config={"gemm_backend_config":{"dot_dimension_numbers":{"lhs_contracting_dimensions":["2"],"rhs_contracting_dimensions":["1"],"lhs_batch_dimensions":["0"],"rhs_batch_dimensions":["0"]}}}
  ROOT %sum = bf16[4,512,128]{2,1,0} add(%dot, %call)
}
"""  # noqa: E501 - as a compiler prints it


def test_the_size_of_a_product_is_read_from_the_text():
    module = parse(PRODUCTS)
    sizes = {name: operations.size(module.instructions[name], module) for name in ("dot", "call", "sum")}
    assert sizes == {"dot": ProductSize(4, 512, 128, 256), "call": ProductSize(4, 512, 128, 256), "sum": None}
    on = work.chip(targets.parse("h100:1").device_kind)
    assert on is not None and on.cores == 132
    cost = work.cost(module.instructions["dot"], module, on)
    peak = hardware.find("NVIDIA H100 80GB HBM3")
    rate = peak.rate("bfloat16").flop_per_s * hardware.ceiling(peak.name, "product_share")
    assert cost.seconds == pytest.approx(work.product_s(ProductSize(4, 512, 128, 256), rate, 132))
    tpu = work.chip(targets.parse("v5e:2x4").device_kind)
    assert (tpu.cores, tpu.kernel_s, tpu.overlap) == (0, 0.0, 0.0)


def test_an_elementwise_kernel_takes_its_start_and_its_bytes():
    module = parse(PRODUCTS)
    gpu, tpu = (work.chip(targets.parse(target).device_kind) for target in ("h100:1", "v5e:2x4"))
    assert gpu is not None and tpu is not None and gpu.kernel_s > 0
    moved = 3 * 2 * 4 * 512 * 128  # two arrays of bfloat16 are read and one is written
    for chip in (gpu, tpu):
        cost = work.cost(module.instructions["sum"], module, chip)
        assert cost is not None and (cost.how, cost.bytes) == ("memory", moved)
        assert cost.seconds == pytest.approx(chip.kernel_s + moved / chip.memory_bytes_per_s, rel=1e-12)
