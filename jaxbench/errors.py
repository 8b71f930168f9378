# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""JaxbenchError and its kinds: the exceptions that are shown as a sentence, without a stack trace."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import TypeVar

Value = TypeVar("Value")


class JaxbenchError(Exception):
    """What the Python API raises. The message is the sentence that the command line prints."""


class UserError(JaxbenchError):
    """Bad input. The message is one sentence that names the value and a legal one."""


class NothingToMeasure(UserError):
    """The request needs something that this machine does not have, such as a second device."""


class Unsupported(UserError):
    """A valid request, but this strategy cannot run this model. The message names a remedy or another strategy."""


class Raised(UserError):
    """An exception of the user's file or of a library (its __cause__), with the line that it passed through."""


def did_you_mean(word: str, legal: Iterable[str]) -> str:
    """``did you mean 'x'?`` if a legal word is close to `word`, else a list of the legal words."""
    legal = sorted(legal)
    close = difflib.get_close_matches(word, legal, n=1, cutoff=0.6)
    return f"did you mean '{close[0]}'?" if close else f"choose one of: {', '.join(legal)}."


class Diverged(UserError):
    """The loss of a training is not finite. step: the first step with such a loss."""

    def __init__(self, message: str, step: int):
        super().__init__(message)
        self.step = step


def quoted(names: Iterable[object], most: int = 3) -> str:
    """The first names in quotation marks, and how many more there are: "'a', 'b', 'c' and 2 more"."""
    words = [f"'{name}'" for name in names]
    return ", ".join(words[:most]) + (f" and {len(words) - most} more" if len(words) > most else "")


def present(value: Value | None) -> Value:
    """`value`, which the caller knows to be there. Raises RuntimeError for None: a fault of this program.

    Not an `assert`, which Python leaves out under -O.
    """
    if value is None:
        raise RuntimeError("a value that must be there is None: this is a fault of jaxbench")
    return value


def of_kind(kind: type[Value], value: object) -> Value:
    """`value`, which the caller knows to be a `kind`. Raises TypeError for another: a fault of this program."""
    if not isinstance(value, kind):
        raise TypeError(f"a {type(value).__name__} where only a {kind.__name__} can be: this is a fault of jaxbench")
    return value
