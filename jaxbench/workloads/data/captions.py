# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Images of digits with random captions that name them: image-text pairs without a network."""

from __future__ import annotations

import numpy as np

from jaxbench.errors import UserError
from jaxbench.workloads import data
from jaxbench.workloads.base import Splits
from jaxbench.workloads.data.order import words

NAMES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
PHRASES = ("{}", "a {}", "the digit {}", "a handwritten {}", "{} again", "{}, by hand", "this is {}", "it reads {}")
CASES = (str.lower, str.upper, str.capitalize)
LONGEST = max(len(phrase.format(name)) for phrase in PHRASES for name in NAMES)


def load(path: str, *, seed: int, size: int, length: int) -> Splits:
    """The images that `data.load` reads from `path`, each with the bytes of a caption.

    Adds "caption" to train and test, int32 (N, length), padded with 0.

    Raises:
      UserError: as `data.load`, or `length` is less than that of the longest caption.
    """
    if length < LONGEST:
        raise UserError(f"--config.model.length={length} cannot hold a caption: it must be at least {LONGEST}.")
    images = data.load(path, seed=seed, size=(size, size))
    train, test = (
        {**part, "caption": _captions(part["label"], length, seed, number)}
        for number, part in enumerate((images.train, images.test))
    )
    return Splits(train, test, f"{images.name} with drawn captions")


def _captions(label: np.ndarray, length: int, *entropy: int) -> np.ndarray:
    phrase, case, numeral = words(3 * len(label), *entropy).reshape(3, -1)
    out = np.zeros((len(label), length), np.int32)
    for i, digit in enumerate(label):
        name = str(digit) if numeral[i] % 4 == 0 else NAMES[digit]
        text = CASES[case[i] % len(CASES)](PHRASES[phrase[i] % len(PHRASES)].format(name)).encode()
        out[i, : len(text)] = np.frombuffer(text, np.uint8)
    return out
