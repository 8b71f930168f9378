# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Images of digits with captions that name them, drawn from a seed: pairs on a machine without a network."""

from __future__ import annotations

import numpy as np

from jaxbench.errors import UserError
from jaxbench.workloads import data
from jaxbench.workloads.data.images import Images
from jaxbench.workloads.data.order import words

NAMES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
PHRASES = ("{}", "a {}", "the digit {}", "a handwritten {}", "{} again", "{}, by hand", "this is {}", "it reads {}")
CASES = (str.lower, str.upper, str.capitalize)
LONGEST = max(len(phrase.format(name)) for phrase in PHRASES for name in NAMES)


def load(path: str, *, seed: int, size: int, length: int) -> Images:
    """The images that `data.load` reads from `path`, each with the bytes of a caption.

    Adds to train and test "caption", int32 (N, length), filled up with 0.

    Raises:
      UserError: what `data.load` raises, or `length` is less than the longest caption's.
    """
    if length < LONGEST:
        raise UserError(f"--config.model.length={length} cannot hold a caption: it must be at least {LONGEST}.")
    found = data.load(path, seed=seed, size=(size, size))
    train, test = (
        {**part, "caption": _captions(part["label"], length, seed, number)}
        for number, part in enumerate((found.train, found.test))
    )
    return Images(train, test, f"{found.name} with drawn captions")


def _captions(label: np.ndarray, length: int, *entropy: int) -> np.ndarray:
    phrase, case, numeral = words(3 * len(label), *entropy).reshape(3, -1)
    out = np.zeros((len(label), length), np.int32)
    for i, digit in enumerate(label):
        name = str(digit) if numeral[i] % 4 == 0 else NAMES[digit]
        text = CASES[case[i] % len(CASES)](PHRASES[phrase[i] % len(PHRASES)].format(name)).encode()
        out[i, : len(text)] = np.frombuffer(text, np.uint8)
    return out
