# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""JSON values as dataclasses, and back: decoding and hashes.

The types of a dataclass's fields say what its JSON may hold, so a new field is one line. `Range` adds limits to a
number. Rules that concern several fields belong in a method `validate`, which raises ValueError.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import math
import types
import typing
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, NoReturn, TypeVar

T = TypeVar("T")
Decoder = Callable[[object], object]
JsonObject = dict[str, object]
SHA256 = "sha256"  # the field of a document that holds its own hash
_MOST = 1e100  # sums, squares and ratios of numbers with limits are finite, too
_WORDS = {float: "a number", int: "a whole number", str: "a string", bool: "true or false"}
_ACCEPTED: dict[object, tuple[type, ...]] = {float: (float, int), int: (int,), str: (str,), bool: (bool,)}


@dataclass(frozen=True)
class Range:
    """Limits of a finite number: at least `least` and above `above`."""

    least: float = -math.inf
    above: float = -math.inf

    @property
    def words(self) -> str:
        limits = (
            f"at least {self.least:g}" * (self.least > -math.inf),
            f"above {self.above:g}" * (self.above > -math.inf),
        )
        return f"a finite number {''.join(limits)}".strip()


Positive = Annotated[float, Range(above=0)]  # such as seconds
NonNegative = Annotated[float, Range(least=0)]
Finite = Annotated[float, Range()]
Count = Annotated[int, Range(least=0)]
AtLeastOne = Annotated[int, Range(least=1)]


def decode(kind: type[T], value: object) -> T:
    """The JSON value as a `kind`. Numbers stay as they are: an int in a field of type float remains an int.

    Raises ValueError, with the field's name, for a missing or unknown field, another type, or a number out of range.
    """
    return typing.cast(T, _decoder(typing.cast(Hashable, kind))(value))


@functools.cache  # a run has thousands of records of the same few types
def _decoder(kind: Hashable) -> Decoder:
    """The function that turns a JSON value into a value of this type."""
    if dataclasses.is_dataclass(kind):
        return _object_decoder(kind)
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        others = tuple(part for part in parts if part is not types.NoneType)
        tagged = all(map(dataclasses.is_dataclass, others))
        part = _decoder(others[0]) if len(others) == 1 else (_tagged_decoder if tagged else _any_decoder)(others)
        return part if len(others) == len(parts) else lambda value: None if value is None else part(value)
    if typing.is_typeddict(kind):
        return _kept_decoder(kind)
    if origin is dict:
        part = _decoder(parts[1])
        return lambda value: {name: _named(name, part, each) for name, each in _typed(value, dict, "an object").items()}
    if origin is list:
        part = _decoder(parts[0])
        return lambda value: list(map(part, _typed(value, list, "a list")))
    if origin is tuple and parts[-1] is Ellipsis:
        part = _decoder(parts[0])
        return lambda value: tuple(map(part, _typed(value, list, "a list")))
    if origin is tuple:
        decoders = [_decoder(part) for part in parts]
        return lambda value: tuple(d(v) for d, v in zip(decoders, _typed(value, list, "a list"), strict=True))
    return _scalar_decoder(kind, origin, parts)


def _scalar_decoder(kind: Any, origin: object, parts: tuple[Any, ...]) -> Decoder:
    if origin is typing.Literal:
        words = " or ".join(map(repr, parts))
        legal = {(type(part), part) for part in parts}  # with types, because True == 1 in Python
        return lambda value: value if (type(value), value) in legal else _refuse(value, words)
    if kind in (Any, object):
        return lambda value: value
    kind, limits = parts if origin is Annotated else (kind, None)
    accepted, words = _ACCEPTED[kind], _WORDS[kind]

    def scalar(value: object) -> object:
        # bool is an int in Python, and `true` is no number in JSON.
        if not isinstance(value, accepted) or (isinstance(value, bool) and kind is not bool):
            _refuse(value, words)
        number = typing.cast(float, value)  # only numbers have limits
        if limits is not None and not (limits.least <= number < math.inf and number > limits.above):
            _refuse(value, limits.words)
        if limits is not None and number and not 1 / _MOST < abs(number) < _MOST:
            _refuse(value, f"within {1 / _MOST:g} and {_MOST:g}, as all quantities are")
        return value

    return scalar


def _tagged_decoder(kinds: tuple[Any, ...]) -> Decoder:
    """Of dataclasses that differ in the default of their field `kind`, which names them in JSON."""
    decoders = {kind.kind: _decoder(kind) for kind in kinds}

    def decoded(value: object) -> object:
        name = _typed(value, dict, "an object").get("kind")
        return decoders[name](value) if name in decoders else _refuse(str(name), " or ".join(map(repr, decoders)))

    return decoded


def _any_decoder(kinds: tuple[Any, ...]) -> Decoder:
    """Of types that JSON tells apart, such as a string and a list."""
    decoders = [_decoder(kind) for kind in kinds]

    def decoded(value: object) -> object:
        refused = ""
        for decoder in decoders:
            try:
                return decoder(value)
            except ValueError as error:
                refused = refused or str(error)
        raise ValueError(refused)

    return decoded


def _kept_decoder(kind: Any) -> Decoder:
    """Of a TypedDict: a dictionary that is kept as it is, with keys of other versions. Its known keys are checked."""
    fields = {name: _decoder(hint) for name, hint in typing.get_type_hints(kind, include_extras=True).items()}

    def decoded(value: object) -> object:
        for name, each in _typed(value, dict, "an object").items():
            if name in fields:
                _named(name, fields[name], each)
        return value

    return decoded


def _named(name: str, decoder: Decoder, value: object) -> object:
    """The decoded value of a field. In nested documents, the names in an error add up to a path."""
    try:
        return decoder(value)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error


def _object_decoder(kind: Any) -> Decoder:
    hints = typing.get_type_hints(kind, include_extras=True)
    fields = {field.name: _decoder(hints[field.name]) for field in dataclasses.fields(kind)}
    missing = dataclasses.MISSING  # None is a legal default
    required = [f.name for f in dataclasses.fields(kind) if f.default is missing and f.default_factory is missing]

    def decoded(value: object) -> object:
        values = {}
        for name, each in _typed(value, dict, "an object").items():
            if name not in fields:
                raise ValueError(f"unknown field '{name}'")
            values[name] = _named(name, fields[name], each)
        if absent := [name for name in required if name not in values]:
            raise ValueError(f"no field '{absent[0]}'")
        made = kind(**values)
        if hasattr(made, "validate"):
            made.validate()
        return made

    return decoded


def _typed(value: object, kind: type[T], words: str) -> T:
    """The value, if it is of this type. Raises ValueError with `words` otherwise."""
    # JSON has lists only; a tuple comes from a document that never was JSON.
    if type(value) is kind or (kind is list and type(value) is tuple):
        return typing.cast(T, value)
    _refuse(value, words)


def _refuse(value: object, words: str) -> NoReturn:
    """Raises the ValueError of a value that is not what `words` say."""
    raise ValueError(f"{str(value)[:80]!r} is not {words}" if isinstance(value, str) else f"{value} is not {words}")


def plain(value: object) -> Any:
    """The value as JSON can hold it: dataclasses and named tuples become objects, numbers that are not finite null."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, tuple | list):
        items = value._asdict() if hasattr(value, "_asdict") else value  # a named tuple
        return plain(items) if isinstance(items, dict) else [plain(each) for each in items]
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value


def digest(document: Mapping[str, object], before: str = "") -> str:
    """The sha256 of the document without its own hash, as canonical JSON (sorted names, no spaces), and of the hash of
    the document before it in a chain. Raises ValueError if a number is not finite."""
    content = {name: value for name, value in document.items() if name != SHA256}
    content |= {"before": before} if before else {}
    try:
        text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    except ValueError as error:
        raise ValueError("a number is not finite") from error
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def sealed(document: Mapping[str, object]) -> JsonObject:
    """The document with its hash."""
    return {**document, SHA256: digest(document)}


def unsealed(document: dict[str, Any]) -> dict[str, Any]:
    """The document without its hash. Raises ValueError if its content has another hash. Older documents have none."""
    if SHA256 in document and document[SHA256] != digest(document):
        raise ValueError("its numbers were changed after it was written")
    return {name: value for name, value in document.items() if name != SHA256}


def flatten(tree: Mapping[str, object], prefix: str = "") -> dict[str, Any]:
    """Nested names joined by dots: {"a": {"b": 1}} -> {"a.b": 1}."""
    flat: dict[str, Any] = {}
    for key, value in tree.items():
        if isinstance(value, dict):
            flat.update(flatten(value, f"{prefix}{key}."))
        else:
            flat[prefix + key] = value
    return flat
