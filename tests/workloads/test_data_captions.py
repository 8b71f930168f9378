# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Drawn captions name their digits, are reproducible by seed, and vary within a digit."""

from __future__ import annotations

import numpy as np
import pytest

from jaxbench.errors import UserError
from jaxbench.workloads.data import captions


def said(part: dict[str, np.ndarray]) -> list[str]:
    return [bytes(row.astype(np.uint8)).rstrip(b"\0").decode() for row in part["caption"]]


def test_every_caption_names_its_digit_and_no_other() -> None:
    data = captions.load("", seed=0, size=8, length=captions.LONGEST)
    for part in (data.train, data.test):
        assert part["caption"].dtype == np.int32 and part["image"].shape[1:] == (8, 8, 1)
        for text, digit in zip(said(part), part["label"], strict=True):
            words = set(text.lower().replace(",", "").split())
            named = {i for i, name in enumerate(captions.NAMES) if {name, str(i)} & words}
            assert named == {digit}, text


def test_captions_follow_the_seed_and_vary() -> None:
    first, again, other = (said(captions.load("", seed=seed, size=8, length=24).train) for seed in (0, 0, 1))
    assert first == again != other
    assert len(set(first)) > 200


def test_captions_that_do_not_fit_are_named() -> None:
    with pytest.raises(UserError, match=f"length=5 cannot hold a caption: it must be at least {captions.LONGEST}"):
        captions.load("", seed=0, size=8, length=5)
