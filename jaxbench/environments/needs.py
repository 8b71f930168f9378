# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Which packages an environment needs: those of jaxbench, and those that a person's files import."""

from __future__ import annotations

import ast
import functools
import sys
from collections.abc import Iterable, Sequence
from importlib import metadata
from pathlib import Path
from urllib.parse import unquote, urlsplit

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from jaxbench.environments.release import Release
from jaxbench.errors import UserError
from jaxbench.machine import source
from jaxbench.records import reading

# An accelerator's plug-in comes with an extra of jax.
EXTRAS = {"jax-cuda12-plugin": "cuda12", "jax-cuda13-plugin": "cuda13", "libtpu": "tpu"}
OURS, JAX = "jaxbench", "jax"


def of_jaxbench() -> list[str]:
    """The requirements of jaxbench, by name only: a lower limit would forbid older releases. Raises UserError."""
    try:
        wanted = [Requirement(text) for text in metadata.requires(OURS) or ()]
    except metadata.PackageNotFoundError as error:
        raise UserError(
            "the packages that jaxbench needs are unknown, because it is not installed in this Python: "
            "install it with pip install --editable PATH."
        ) from error
    names = [each.name for each in wanted if not each.marker or each.marker.evaluate({"extra": ""})]
    return [_with_accelerator(name) for name in names]


def require_supported(release: Release) -> None:
    """Raises UserError for a release of JAX that is older than jaxbench runs with."""
    wanted = [Requirement(text) for text in metadata.requires(OURS) or ()]
    limits = next(each.specifier for each in wanted if each.name == JAX)
    version = release.version_of(JAX)
    if version and not limits.contains(version, prereleases=True):
        raise UserError(f"{JAX}=={version}: jaxbench runs with {JAX}{limits}, so choose {JAX}==0.10.0 or a newer one.")


def _with_accelerator(name: str) -> str:
    extras = [extra for plugin, extra in EXTRAS.items() if plugin in installed()] if name == JAX else []
    return f"{name}[{','.join(extras)}]" if extras else name


@functools.cache
def installed() -> dict[str, str]:
    """The version of each installed package, by canonical name."""
    return {canonicalize_name(each.name): each.version for each in metadata.distributions() if each.name}


def of_files(files: Iterable[Path]) -> list[str]:
    """A requirement for each installed package that these Python files import."""
    names = {name for file in files for name in imported(file)}
    owners = metadata.packages_distributions()
    packages = {owner for name in names for owner in owners.get(name, ()) if canonicalize_name(owner) != OURS}
    return sorted({_requirement(package) for package in packages})


def of_command(words: Sequence[str], folder: Path) -> list[str] | None:
    """The packages that the Python files in a command import; None if it names no file. folder: where it runs."""
    files = [path for word in words if word.endswith(".py") and (path := folder / word).is_file()]
    return of_files(_with_siblings(files)) if files else None


def _with_siblings(files: Sequence[Path]) -> list[Path]:
    """Also the modules and packages next to them that they import, directly or not."""
    found: dict[Path, None] = {}
    ahead = [*files]
    while ahead:
        file = ahead.pop()
        if file in found:
            continue
        found[file] = None
        for name in imported(file):
            module, package = file.parent / f"{name}.py", file.parent / name
            ahead += [module] if module.is_file() else sorted(package.rglob("*.py"))
    return [*found]


def imported(file: Path) -> set[str]:
    """The first part of each module that a file imports, without those of Python itself."""
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError):  # it will say so itself, when it runs
        return set()
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.split(".")[0])
    return names - set(sys.stdlib_module_names)


def _requirement(package: str) -> str:
    """A requirement for an installed package: its name, or where it came from if that was no index."""
    text = metadata.distribution(package).read_text("direct_url.json")
    if not text:
        return package
    origin = reading.of_text(f"direct_url.json of {package}", text, dict, "install it again.")
    if origin.get("dir_info", {}).get("editable"):
        return f"--editable {unquote(urlsplit(origin['url']).path)}"
    if "archive_info" in origin and urlsplit(origin["url"]).scheme == "file":  # a wheel file, which may be gone
        return package
    commit = origin.get("vcs_info", {})
    url = f"{commit['vcs']}+{origin['url']}@{commit['commit_id']}" if commit else origin["url"]
    return f"{package} @ {url}"


def lock() -> str:
    """The versions to prefer, one requirement a line: those of the clone's lock, else those that are installed here."""
    file = source.PACKAGE.parent / "requirements.lock"
    if file.is_file():
        return file.read_text()
    return "".join(f"{name}=={version}\n" for name, version in sorted(installed().items()) if name != OURS)


def pinned_by(lock_text: str) -> dict[str, str]:
    """The version of each package by canonical name, of the lines of a lock that hold for this Python."""
    found: dict[str, str] = {}
    for line in lock_text.splitlines():
        read = Requirement(line) if line.strip() and not line.startswith(("#", "-", " ")) else None
        if read and (not read.marker or read.marker.evaluate()):
            found[canonicalize_name(read.name)] = next((each.version for each in read.specifier), "")
    return found


def dependents(packages: Iterable[str]) -> set[str]:
    """The installed packages that need one of `packages`, directly or not."""
    needs: dict[str, set[str]] = {
        canonicalize_name(each.name): {canonicalize_name(Requirement(text).name) for text in each.requires or ()}
        for each in metadata.distributions()
        if each.name
    }
    found, ahead = set[str](), set(packages)
    while ahead:
        ahead = {name for name, those in needs.items() if those & ahead} - found
        found |= ahead
    return found
