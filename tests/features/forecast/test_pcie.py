# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Links over PCIe: their rates, what peer-to-peer and NVLink bring, and from how many GPUs on more cost too much."""

from __future__ import annotations

import dataclasses
from functools import partial

import pytest
from fabricate_forecasts import compiled
from rich.console import Console

from jaxbench.catalog import hardware, rows, targets
from jaxbench.core.schema import Collective
from jaxbench.errors import UserError
from jaxbench.features.forecast import advice, estimate, forecast_command, forecasts, network, page, work
from jaxbench.features.forecast.figures import draw_links
from jaxbench.features.forecast.forecasts import NVLINK, PEER, STAGED
from jaxbench.features.forecast.network import AlphaBetaLink, Hosts, PciePath, Torus


def rate(path: PciePath, group: int = 2) -> float:
    return path.link(group).bytes_per_s


def test_a_rate_follows_from_generation_lanes_and_the_way():
    fourth, fifth = (PciePath(generation=each, lanes=16, peer=True) for each in (4, 5))
    assert rate(fifth) == pytest.approx(2 * rate(fourth), rel=1e-3)
    assert rate(dataclasses.replace(fourth, lanes=8)) == pytest.approx(rate(fourth) / 2)
    assert rate(fourth) == pytest.approx(0.82 * 16 * 1.969e9)
    staged = dataclasses.replace(fourth, peer=False)
    assert rate(staged) == pytest.approx(0.56 * 16 * 1.969e9)
    shared = dataclasses.replace(staged, switch=True)
    assert [rate(shared, group) for group in (2, 4)] == pytest.approx([rate(staged) / 2, rate(staged) / 4])
    assert rate(dataclasses.replace(fourth, switch=True)) == rate(fourth)  # peer-to-peer stays within the switch


def test_the_published_collectives_of_consumer_gpus_are_what_the_model_says():
    """NVIDIA/nccl#1639: 35 GB/s on four RTX 5090, 28 on eight at two processors; 25.8 on four RTX 4090 with peers."""
    blackwell = network.slot(targets.parse("rtx5090:8"), peer=False)
    assert [rate(blackwell, group) for group in (4, 8)] == pytest.approx([35e9, 28e9], rel=0.02)
    assert rate(network.slot(targets.parse("rtx4090:4"), peer=True), 4) == pytest.approx(25.8e9, rel=0.02)


def test_a_path_is_read_from_its_text():
    assert network.parse("pcie4x8:p2p") == PciePath(generation=4, lanes=8, peer=True)
    shared = PciePath(generation=3, lanes=16, peer=False, switch=True, socket=1)
    assert network.parse("pcie3x16:staged:switch:sockets") == shared
    for wrong in ("pcie4x16", "pcie6x16:p2p", "pcie4x16:p2p:staged", "pcie4x16:fast"):
        with pytest.raises(UserError, match="write pcie4x16:staged or pcie4x16:p2p"):
            network.parse(wrong)
    links = tuple((text, network.parse(text)) for text in ("100gbit", "pcie4x8:p2p"))
    asked = forecast_command.ForecastRequest(links=links)
    found = asked.network(targets.parse("rtx4090:16"))
    assert isinstance(found, Hosts)
    assert found.inside == PciePath(generation=4, lanes=8, peer=True)
    assert found.between == network.parse("100gbit")


def test_consumer_gpus_have_no_network_between_hosts():
    with pytest.raises(UserError, match=r"rtx4090:16.*give one with --link=400gbit"):
        network.of(targets.parse("rtx4090:16"))
    assert network.largest(targets.parse("rtx4090:8")) == 8
    assert network.largest(targets.parse("h100:8")) > 10**6
    assert network.largest(targets.parse("tpu7x:2x2x1")) == 2 * 9216


def on(name: str, count: int = 2, path: PciePath | None = None) -> forecasts.ForecastRecord:
    made = compiled(count, target=name, gathered=8 * 10**9)
    target = targets.parse(f"{name}:{count}")
    return estimate.timed(made.forecast, made.events, target, network.of(target, path=path))


def test_a_forecast_says_what_each_link_would_do():
    made = on("rtx4090")
    assert made.link == "PCIe 4.0 x16, staged through the host"
    assert made.by_link[NVLINK] < made.by_link[PEER] < made.by_link[STAGED] < made.slowest_s
    assert made.scheduled_s == pytest.approx(made.by_link[STAGED])
    assert made.high_s is not None and made.high_s >= made.slowest_s  # the band includes the slowest host
    assert on("rtx4090", path=network.parse("pcie4x16:p2p")).scheduled_s == pytest.approx(made.by_link[PEER])
    bridged = on("h100")
    assert bridged.link == "" and bridged.link_name == NVLINK
    assert bridged.scheduled_s == pytest.approx(bridged.by_link[NVLINK])
    assert bridged.slowest_s == 0
    factors = [made.link_factor(made.by_link[name]) for name in (NVLINK, PEER, STAGED)]
    assert factors == sorted(factors, reverse=True) and factors[0] <= 1.0


def test_depths_keep_the_links():
    shallow, deep = on("rtx4090"), on("rtx4090")
    made = estimate.at_depth(shallow, dataclasses.replace(
        deep, slowest_s=2 * deep.slowest_s, by_link={name: 2 * value for name, value in deep.by_link.items()}
    ), (1, 2), 4)  # fmt: skip
    assert made.by_link == pytest.approx({name: 4 * value for name, value in deep.by_link.items()})
    assert made.high_s is not None and made.high_s >= made.slowest_s == pytest.approx(4 * deep.slowest_s)


def test_a_band_reaches_to_the_slowest_path_and_the_slowest_network_together():
    """Also for hosts of one device, which have no other link, and for slices."""
    network_of = partial(network.of, between=network.parse("100gbit"))
    for name in ("rtx4090:2x4", "l4:4x1", "v5e:2x2x2", "h100:16"):
        known, worst = network_of(targets.parse(name)), network.slowest(network_of(targets.parse(name)))
        assert worst.between.alpha_s == hardware.link("cpu", "slow network").alpha_s > known.between.alpha_s
        assert network.slowest(worst) == worst and network.assumed(known)[-1].startswith("The latency of a message")
    both = network_of(targets.parse("rtx4090:2x4"))
    assert network.slowest(both).inside.limit == hardware.pcie("slowest_staged")
    assert len(network.assumed(both)) == 2
    assert network.slowest(known := network.of(targets.parse("h100:16"))) is known and not network.assumed(known)
    alone, target = compiled(4, target="l4"), targets.parse("l4:4x1")
    made = estimate.timed(alone.forecast, alone.events, target, network_of(target))
    assert made.by_link == {} and made.high_s >= made.slowest_s > made.bare_s


def test_a_description_that_was_derived_is_named_at_other_counts_too():
    target = targets.parse("l4:8")
    made = estimate.at_count(compiled(2, target="l4"), compiled(4, target="l4"), 8, target, network.of(target))
    assert any(note.startswith("The compiler's description of l4 is derived") for note in made.notes)


def test_the_page_has_the_factor_link_with_and_without_peer_to_peer(tmp_path):
    forecasts.write(tmp_path, [on("rtx4090"), on("h100", 8)])
    console = Console(record=True, width=200)
    page.write(tmp_path, console)
    shown = " ".join(console.export_text().split())
    assert "rtx4090:2 fsdp weak on 2 devices, here PCIe 4.0 x16, staged through the host: work is" in shown
    assert (
        "% of a step over PCIe with peer-to-peer" in shown
        and "% over the slowest link of this kind that was measured" in shown
    )
    assert (tmp_path / "figures" / "links.svg").exists()
    assert draw_links([dataclasses.replace(on("h100", 8), by_link={})], title="t") is None


def line(count: int, seconds: float, by_link: dict[str, float] | None = None) -> forecasts.ForecastRecord:
    return dataclasses.replace(
        on("rtx4090"), devices=count, global_batch=count, scheduled_s=seconds, peak_bytes=10**9, grade="estimated",
        by_link=by_link or {},
    )  # fmt: skip


def test_more_gpus_cost_more_than_they_bring_once_a_doubling_is_less_than_the_root_of_two():
    slow = [line(1, 1.0), line(2, 1.5, {PEER: 1.1, NVLINK: 1.0}), line(4, 1.6, {PEER: 1.2, NVLINK: 1.0})]
    (made,) = advice.growth(slow, host=8)
    assert made.speed == pytest.approx((1.0, 2 / 1.5, 2.5))
    assert made.by_link[NVLINK] == pytest.approx((1.0, 2.0, 4.0))
    assert made.too_many == 2
    assert dataclasses.replace(made, speed=(1.0, 1.5, 2.0)).too_many == 4
    assert dataclasses.replace(made, speed=(1.0, 1.5, 2.2)).too_many is None
    assert advice.growth(slow[:1], host=8) == [] and advice.growth(slow, host=1) == []
    said = page._growth({**dataclasses.asdict(made), "too_many": made.too_many})
    assert said == (
        "rtx4090 fsdp (PCIe 4.0 x16, staged through the host): 2 do 1.33, 4 do 2.5 times the work of 1. "
        "From 2 on, more cost more than they bring. 4 would do 3.33 over PCIe with peer-to-peer, 4 over NVLink."
    )


def test_two_devices_of_a_chip_share_its_links_and_pass_data_on_faster():
    torus = Torus(shape=(4, 4, 4), link=AlphaBetaLink(alpha_s=0.0, bytes_per_s=1e9), ring=4, chip=2)
    gathered = Collective(kind="all-gather", count=1, bytes=10**9, group=128, wire_bytes=10**9)
    assert torus.seconds(gathered, 1) == pytest.approx(1 / 6)  # both ways along three sides
    assert torus.seconds(dataclasses.replace(gathered, group=2), 1) == pytest.approx(1 / 6)


@pytest.mark.parametrize("name", ["v100", "t4"])
def test_a_gpu_without_bfloat16_multiplies_in_float32(name):
    chip = work.chip(targets.parse(f"{name}:8").device_kind)
    assert chip is not None
    products = dict(chip.products)
    assert products["bfloat16"] == products["float32"] < products["float16"]


def test_pcie_numbers_name_their_sources():
    assert all(row["source"] for row in rows("pcie.csv"))
    assert hardware.pcie("staged_share") < hardware.pcie("peer_share") < 1
