# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The census reads HLO text of every form that XLA prints collectives in."""

from jaxbench.measure import census
from jaxbench.records.schema import Collective

HLO = """
  %all-reduce.2 = (f32[3,8]{1,0}, f32[]) all-reduce(%dot.1, %fusion), channel_id=1, to_apply=%add
  %get-tuple-element = f32[3,8]{1,0} get-tuple-element(%all-reduce.2), index=0
  %ar-start = bf16[16]{0} all-reduce-start(%p), replica_groups={{0,1}}
  %ar-done = bf16[16]{0} all-reduce-done(%ar-start)
  %ag-start = (f32[4]{0}, f32[8]{0}) all-gather-start(%p), dimensions={0}
  %ag-done = f32[8]{0} all-gather-done(%ag-start)
  ROOT %cp = u8[5]{0:T(128)} collective-permute(%x), source_target_pairs={{0,1}}
"""


def test_counts_and_bytes():
    assert census.read(HLO) == (
        Collective(kind="all-gather", count=1, bytes=32, elements=8),
        Collective(kind="all-reduce", count=3, bytes=96 + 4 + 32, elements=24 + 16, scalar_bytes=4),
        Collective(kind="collective-permute", count=1, bytes=5, elements=5),
    )


def test_scalars_do_not_count_as_gradients():
    found = [Collective(kind="all-reduce", count=3, bytes=40, scalar_bytes=8)]
    assert census.verify(found, 32, 2).ok
    assert not census.verify(found, 40, 2).ok


def test_missing_collectives_fail_but_one_device_needs_none():
    assert not census.verify((), 32, 2).ok
    assert census.verify((), 0, 1).ok


def test_gradients_in_16_bits_are_known_by_their_number():
    half = Collective(kind="all-reduce", count=1, bytes=16, elements=8)
    assert census.verify([half], 32, 2).ok
    assert "16 bits" in census.verify([half], 32, 2).reason
    assert not census.verify([Collective(kind="all-reduce", count=1, bytes=16, elements=4)], 32, 2).ok


def test_parameters_of_16_bits_may_be_reduced_in_32_but_not_twice():
    widened = Collective(kind="all-reduce", count=1, bytes=64, elements=16)
    assert census.verify([widened], 32, 2, itemsize=2).ok
    assert "16 bits once in float32" in census.verify([widened], 32, 2, itemsize=2).reason
    assert not census.verify([widened], 32, 2).ok  # parameters of 32 bits, each twice
    assert not census.verify([Collective(kind="all-reduce", count=2, bytes=64, elements=32)], 32, 2, itemsize=2).ok


def test_statistics_of_a_stateful_model_may_be_reduced_too():
    more = [Collective(kind="all-reduce", count=3, bytes=48, elements=12)]
    assert census.verify(more, 32, 2, stateful=True).ok
    assert not census.verify(more, 32, 2).ok
    assert not census.verify(more, 64, 2, stateful=True).ok
