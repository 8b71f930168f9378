# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The exceptions that a person sees as one sentence, without a stack trace."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class UserError(Exception):
    """Bad input. The message is one sentence that names the value and a legal one."""


class NothingToMeasure(UserError):
    """The request needs something that this machine does not have, such as a second device."""


class Unsupported(UserError):
    """A valid request, but this strategy cannot take this model. The message names a remedy or another strategy."""


class Raised(UserError):
    """Not a refusal: an exception of the user's file or of a library (its __cause__), with the line where it passed."""


def did_you_mean(word: str, legal: Iterable[str]) -> str:
    """Returns ``did you mean 'x'?`` if a legal word is close to `word`; otherwise lists the legal words."""
    legal = sorted(legal)
    close = difflib.get_close_matches(word, legal, n=1, cutoff=0.6)
    return f"did you mean '{close[0]}'?" if close else f"choose one of: {', '.join(legal)}."


class Diverged(UserError):
    """The loss of a training is not finite. step: the step with this loss."""

    def __init__(self, message: str, step: int):
        super().__init__(message)
        self.step = step


class MoreCollectives(Exception):
    """A program in which more collectives (`count`) can wait at the same time than this process has threads for."""

    def __init__(self, count: int):
        super().__init__(f"{count} collectives of this program can wait at the same time")
        self.count = count
