# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""One lever: its values, how they are typed, and what they change. `levers` declares them all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Generic, Literal, TypeVar

from jaxbench.errors import UserError, did_you_mean

T = TypeVar("T")


@dataclass(frozen=True)
class Lever(Generic[T]):
    """One lever.

    Attributes:
      about: what it sets, as a clause for `jaxbench list levers`.
      default: the value that leaves the step unchanged.
      values: all legal values, as typed; (): `parse` decides what is legal.
      parse: a typed value -> the value that the program uses. Raises ValueError with the end of a sentence.
      changes: the workload (what is computed), the program (how it is distributed and compiled) or the feed (where
        batches come from).
      untrained: the reason why `train` does not accept it, as the end of a sentence; "" if it does.
      view: the figures that show a sweep of only this lever.
      separator: the text between several values.
      sweeps: single values that stand for several.
    """

    name: str
    _: KW_ONLY
    about: str
    default: str
    parse: Callable[[str], T]
    changes: Literal["workload", "program", "feed"]
    values: tuple[str, ...] = ()
    untrained: str = ""
    view: str = "arms"
    separator: str = ","
    sweeps: tuple[str, ...] = ()

    def of(self, levers: Mapping[str, str]) -> T:
        """Its value among the values of all levers; the default if it is missing, as in old records."""
        return self.read(levers.get(self.name, self.default))

    def read(self, text: str) -> T:
        """The value of one word. Raises UserError that names the field, the word and a legal one."""
        try:
            if self.values and text not in self.values:
                raise ValueError(f"is unknown: {did_you_mean(text, self.values)}")
            return self.parse(text)
        except ValueError as error:
            raise UserError(f"--config.lever.{self.name}={text} {error}") from error

    def words(self, text: str) -> tuple[str, ...]:
        """The distinct values of a typed field. Raises UserError for an illegal value, and for an empty field."""
        # In the order typed, which is that of the arms, and without duplicates, which would be two arms of one name.
        words = tuple(dict.fromkeys(word.strip() for word in text.split(self.separator) if word.strip()))
        if not words:
            raise UserError(f"--config.lever.{self.name} is empty: use {self.default}, for example.")
        for word in words:
            self.read(word)  # refuses a later arm now, and not after the earlier ones were measured
        return words

    def swept(self, words: tuple[str, ...]) -> bool:
        """Whether these values make several arms."""
        return len(words) > 1 or words[0] in self.sweeps


def whole(least: int) -> Callable[[str], int]:
    """A parser for whole numbers of at least `least`."""

    def parse(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise ValueError(f"is not a whole number of at least {least}.")
        return int(text)

    return parse
