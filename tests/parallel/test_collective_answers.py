# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Expected results of collectives, against plain NumPy; and that they can be compared exactly."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from jaxbench.errors import UserError
from jaxbench.parallel import collective_answers as answers
from jaxbench.workloads.cases import COLLECTIVES

SEED = 3


@pytest.mark.parametrize("op", COLLECTIVES)
def test_the_answers_are_those_of_plain_numpy(op: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Written out for one group of three devices, and compared in blocks of uneven size."""
    monkeypatch.setattr(answers, "BLOCK", 7)
    places, n, count = (2, 5, 3), 3, 12
    held = [answers.values(SEED, (place,), 0, count, np.dtype("int32"), 7) for place in places]
    parts = [array.reshape(n, count // n) for array in held]
    right = {
        "all_reduce": lambda rank: sum(held),
        "all_gather": lambda rank: np.concatenate(held),
        "reduce_scatter": lambda rank: sum(parts)[rank],
        "all_to_all": lambda rank: np.concatenate([part[rank] for part in parts]),
        "broadcast": lambda rank: held[0],
        "ppermute": lambda rank: held[(rank + 2) % 3],
    }[op]
    for rank in range(n):
        result = np.asarray(right(rank))
        expected = answers.segments(op, places, rank, result.size)
        assert answers.count_wrong(result, expected, SEED, 7) == 0
        assert answers.count_wrong(result + 1, expected, SEED, 7) == result.size
        assert answers.count_wrong(result[:-1], expected, SEED, 7) == result.size


@pytest.mark.parametrize(
    ("dtype", "summands", "largest"),
    [("float32", 32, 7), ("bfloat16", 32, 7), ("bfloat16", 64, 4), ("float16", 1024, 2), ("int8", 32, 3)],
)
def test_sums_are_exact_in_the_dtype(dtype: str, summands: int, largest: int) -> None:
    assert answers.require_exact("all_reduce", jnp.dtype(dtype), summands) == largest
    whole = np.arange(largest * summands + 1)
    assert np.array_equal(whole.astype(jnp.dtype(dtype)).astype(int), whole)


def test_a_sum_that_cannot_be_checked_is_refused() -> None:
    with pytest.raises(UserError, match="all_reduce in bfloat16 over 300 devices cannot be exact"):
        answers.require_exact("all_reduce", jnp.dtype("bfloat16"), 300)
