# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What a lever is: its values, what it changes, whether a training may have it, and what shows it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Generic, Literal, TypeVar

from jaxbench.errors import UserError, did_you_mean

T = TypeVar("T")


@dataclass(frozen=True)
class Lever(Generic[T]):
    """One lever. Its name is that of its file.

    Attributes:
      module: ``__name__`` of the file.
      rank: its place among the levers: in names of arms, on pages, in ``summary.csv``, and in the order in which they
        transform a workload. A new lever takes the next number.
      default: the value that leaves the step as it is without the lever.
      values: all values there are, as typed; (): `parse` says which are legal.
      parse: a value as typed -> what the program works with. Raises ValueError with the end of a sentence.
      changes: the workload (what is computed), the program (how it is spread and compiled) or the feed (where batches
        come from).
      untrained: why a training cannot have it, as the end of a sentence; "": it can.
      view: the figures that show a sweep of this lever alone.
      separator: between several values.
      sweeps: single values that stand for several.
    """

    module: str
    _: KW_ONLY
    rank: int
    default: str
    parse: Callable[[str], T]
    changes: Literal["workload", "program", "feed"]
    values: tuple[str, ...] = ()
    untrained: str = ""
    view: str = "arms"
    separator: str = ","
    sweeps: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.module.rpartition(".")[2]

    def of(self, levers: Mapping[str, str]) -> T:
        """Its value in a setting of levers; the default where that does not have it, as in old records."""
        return self.read(levers.get(self.name, self.default))

    def read(self, text: str) -> T:
        """The value of one word. Raises UserError naming the field, the word and a legal one."""
        try:
            if self.values and text not in self.values:
                raise ValueError(f"is unknown: {did_you_mean(text, self.values)}")
            return self.parse(text)
        except ValueError as error:
            raise UserError(f"--config.lever.{self.name}={text} {error}") from error

    def words(self, text: str) -> tuple[str, ...]:
        """The different values of a field as typed, each legal. Raises UserError as `read` does, and for none."""
        words = tuple(dict.fromkeys(word.strip() for word in text.split(self.separator) if word.strip()))
        if not words:
            raise UserError(f"--config.lever.{self.name} is empty: use {self.default}, for example.")
        for word in words:
            self.read(word)
        return words

    def swept(self, words: tuple[str, ...]) -> bool:
        """Whether these values are several arms."""
        return len(words) > 1 or words[0] in self.sweeps


def whole(least: int) -> Callable[[str], int]:
    """Reads a whole number of at least `least`."""

    def parse(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise ValueError(f"is not a whole number of at least {least}.")
        return int(text)

    return parse
