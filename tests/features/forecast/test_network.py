# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Seconds of one collective on the links of a target, against cases worked by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize

from jaxbench.catalog import hardware, published, targets
from jaxbench.core.schema import Collective
from jaxbench.errors import UserError
from jaxbench.features.forecast import network, work
from jaxbench.features.forecast.network import AlphaBetaLink, Hosts, Torus

HOP = AlphaBetaLink(alpha_s=1e-6, bytes_per_s=1e9)


def message(wire: int, group: int, kind: str = "all-gather") -> Collective:
    return Collective(kind=kind, count=1, bytes=wire, group=group, wire_bytes=wire)


def test_a_ring_uses_both_directions_and_a_line_one():
    ring, line = (Torus(shape=(1, 16), link=HOP, ring=side) for side in (16, 32))
    assert ring.seconds(message(10**9, 16), 1) == pytest.approx(8e-6 + 0.5)
    assert line.seconds(message(10**9, 16), 1) == pytest.approx(15e-6 + 1.0)
    square = Torus(shape=(16, 16), link=HOP, ring=16)
    assert square.seconds(message(10**9, 256), 1) == pytest.approx(16e-6 + 0.25)
    assert square.seconds(message(10**9, 256, "all-reduce"), 1) == pytest.approx(32e-6 + 0.25)
    assert square.seconds(message(10**9, 16), 1) == pytest.approx(8e-6 + 0.5)  # one side of it
    assert square.seconds(message(10**9, 16, "collective-permute"), 1) == pytest.approx(1e-6 + 1.0)
    assert square.seconds(message(10**9, 256, "all-to-all"), 1) == pytest.approx(16e-6 + 2.0)  # 16 / 8
    assert square.seconds(message(0, 256), 1) == 0.0


@pytest.mark.parametrize(("stride", "links"), [(1, 1), (2, 2), (8, 8), (12, 4), (16, 1), (48, 3), (0, 1)])
def test_a_message_crosses_the_links_between_two_chips_and_shares_each_with_those_of_others(stride, links):
    square = Torus(shape=(16, 16), link=HOP, ring=16)
    found = square.seconds(message(10**9, 2, "collective-permute"), stride)
    assert found == pytest.approx(links * (1e-6 + 1.0))
    cube = Torus(shape=(2, 2, 2), link=HOP, ring=16)
    assert cube.seconds(message(10**9, 2, "collective-permute"), 4) == pytest.approx(1e-6 + 1.0)


@pytest.mark.parametrize(("stride", "seconds"), [(1, 1 / 6), (2, 1.0), (4, 2.0)])
def test_two_devices_that_swap_are_on_one_chip_only_if_they_are_neighbours(stride, seconds):
    """Of a slice with two devices on a chip: a link between chips is one for two places of a device."""
    slice_ = Torus(shape=(4, 8), link=HOP, ring=16, chip=2)
    found = slice_.seconds(message(10**9, 2, "collective-permute"), stride)
    assert found == pytest.approx(seconds, rel=1e-4)


def test_a_group_sends_through_as_many_adapters_as_it_has_members_on_a_host():
    inside, between = AlphaBetaLink(alpha_s=1e-5, bytes_per_s=1e11), AlphaBetaLink(alpha_s=1e-3, bytes_per_s=1e10)
    hosts = Hosts(host=8, inside={"": inside}, between=between)
    assert hosts.seconds(message(10**9, 8), 1) == pytest.approx(1e-5 + 0.01)
    assert hosts.seconds(message(10**9, 64), 1) == pytest.approx(1e-3 + 0.0125)  # 8 adapters
    assert hosts.seconds(message(10**9, 8), 8) == pytest.approx(1e-3 + 0.1)  # one member per host
    assert hosts.seconds(message(10**9, 8), 2) == pytest.approx(1e-3 + 0.025)  # four of them
    assert hosts.seconds(message(10**9, 1), 1) == 0.0
    exchange = message(7 * 10**8, 8, "all-to-all")  # 100 MB to each of the seven others
    assert hosts.seconds(exchange, 2) == pytest.approx(1e-3 + 0.04)  # four of them are on the other host
    assert hosts.seconds(exchange, 8) == pytest.approx(1e-3 + 0.07)


def test_every_target_has_its_links():
    cycles = {kind for kind, *_ in targets.TPUS.values()}
    for name in targets.names():
        target = targets.parse(name)
        assert network.of(target).seconds(message(10**9, target.devices), 1) > 0
        chip = work.chip(target.device_kind)
        assert chip is not None and (chip.clock_hz is not None) == (target.device_kind in cycles)


@pytest.mark.parametrize(
    ("column", "group", "device", "link", "adapters"),
    [
        ("a100x8", 8, "NVIDIA A100 SXM 80GB", "nvlink", 1),
        ("h200x8", 8, "NVIDIA H200 SXM", "nvlink", 1),
        ("b200x8", 8, "NVIDIA B200 SXM", "nvlink", 1),
        ("b200x8x4nodes", 32, "NVIDIA B200 SXM", "network", 8),
    ],
)
def test_the_catalogues_links_are_the_fits_of_the_published_series(column, group, device, link, adapters):
    series = published.allreduce()[column].dropna()
    wire = series.index.to_numpy(float) * 2 * (group - 1) / group
    seconds = wire / series.to_numpy()
    unit = wire.max()  # least squares of (line - t) / t, as in the catalogue; published medians hardly scatter
    (alpha, scaled), _ = optimize.nnls(np.stack([1 / seconds, wire / unit / seconds], axis=1), np.ones(len(wire)))
    inverse = scaled / unit
    known = hardware.link(device, link, "all-reduce")
    assert known is not None
    assert known.alpha_s == pytest.approx(alpha, rel=0.02)
    assert known.bytes_per_s == pytest.approx(1 / inverse / adapters, rel=0.01)


def test_the_catalogues_link_is_never_faster_than_the_data_sheet():
    for name in ("Google TPU v5e", "Google TPU v5p", "Google TPU v6e (Trillium)"):
        kind = next(jax_name for jax_name, *_ in targets.TPUS.values() if hardware.find(jax_name).name == name)
        known, peak = hardware.link(name, "ici"), hardware.find(kind)
        ports = 6 if name.endswith("v5p") else 4
        assert known.bytes_per_s * ports == pytest.approx(peak.link.unidirectional_bytes_per_s)


def test_a_link_is_read_from_its_rate():
    assert network.parse("1gbit").bytes_per_s == 1.25e8
    assert network.parse("300mbit:50us") == AlphaBetaLink(alpha_s=5e-5, bytes_per_s=3.75e7)
    assert network.parse("100mbit:2ms").alpha_s == 2e-3
    for wrong in ("fast", "0gbit", "1gb", "1gbit:fast"):
        with pytest.raises(UserError, match="is not a rate: write, for example, 1gbit"):
            network.parse(wrong)


def test_a_card_says_what_it_lacks():
    card = {"links": [{"op": "all_reduce", "dtype": "float32", "devices": 2, "alpha_s": 1e-5, "bus_bytes_per_s": 1e9}]}
    carded = network.MeasuredLinks(profile=card)
    assert carded.seconds(message(10**9, 2, "all-reduce"), 1) == pytest.approx(1.0 + 1e-5)
    with pytest.raises(UserError, match="no all-reduce among 4 devices"):
        carded.seconds(message(10**9, 4, "all-reduce"), 1)
    assert np.isfinite(carded.seconds(message(0, 1, "all-reduce"), 1))


def test_slices_send_through_the_part_of_each_member_in_the_network_that_joins_them():
    inside = Torus(shape=(16, 16), link=HOP, ring=16)
    slices = network.Slices(devices=256, inside=inside, between=AlphaBetaLink(alpha_s=1e-3, bytes_per_s=1e7))
    assert slices.seconds(message(10**9, 256), 1) == inside.seconds(message(10**9, 256), 1)
    assert slices.seconds(message(10**9, 512), 1) == pytest.approx(1e-3 + 1 / 2.56)
    assert slices.seconds(message(10**9, 2), 256) == pytest.approx(1e-3 + 100)  # one member in each slice
    assert slices.seconds(message(10**9, 512, "collective-permute"), 1) == pytest.approx(1e-3 + 100)


def test_slices_and_hosts_of_four_are_targets():
    two = targets.parse("v5e:2x16x16")
    assert (two.devices, two.slices, two.shape, two.part(256).text) == (512, 2, (16, 16), "v5e:16x16")
    assert two.part(1024).text == "v5e:4x16x16"
    assert two.topology()[1]["num_slices"] == 2
    joined = network.of(two)
    assert isinstance(joined, network.Slices)
    alone = network.of(targets.parse("v5e:16x16"))
    assert joined.seconds(message(10**9, 512), 1) > alone.seconds(message(10**9, 256), 1)
    for text, rate in {"v6e:2x2x4": 12.5e9, "tpu7x:2x2x2x1": 6.25e9}.items():  # a chip of TPU7x is two devices
        assert network.of(targets.parse(text)).between.bytes_per_s == rate
    four = targets.parse("h100:2x4")
    assert (four.devices, four.host, four.part(4).text, four.part(16).text) == (8, 4, "h100:4", "h100:4x4")
    assert four.topology()[1]["topology"] == "1x2x4"
    with pytest.raises(UserError, match="h100:2x4 has hosts of 4 GPUs: ask for a multiple of them"):
        four.part(6)
    slow, fast = (network.of(targets.parse(text)).seconds(message(10**9, 8), 1) for text in ("h100:2x4", "h100:8"))
    assert slow > fast
