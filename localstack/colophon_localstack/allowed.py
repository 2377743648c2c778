"""Which programs this stack may run: those whose SHA-256 the stack command wrote into a file that only its user can
write. Everything else that reaches LocalStack, by whatever way, is refused."""

from __future__ import annotations

import hashlib
import os
import zipfile
from collections.abc import Iterable
from pathlib import Path


class NotAllowed(ValueError):
    """A program that is not on the list."""


def digest_of(program: Path) -> str:
    """The SHA-256 of a program, or of the program in a function's zip."""
    if zipfile.is_zipfile(program):
        with zipfile.ZipFile(program) as package:
            return hashlib.sha256(package.read("bootstrap")).hexdigest()
    return hashlib.sha256(program.read_bytes()).hexdigest()


def allow(list_file: Path, digests: Iterable[str]) -> None:
    """Adds to the list, which only its owner can read and write."""
    known = read(list_file)
    new = list_file.with_suffix(".new")
    new.unlink(missing_ok=True)
    with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.writelines(f"{digest}\n" for digest in sorted(known | set(digests)))
    os.replace(new, list_file)


def read(list_file: Path) -> set[str]:
    try:
        return set(list_file.read_text().split())
    except FileNotFoundError:
        return set()


def check(program: Path, list_file: Path | None) -> None:
    """Raises NotAllowed unless the program's SHA-256 is on the list. No list allows nothing."""
    digest = hashlib.sha256(program.read_bytes()).hexdigest()
    if list_file is None or digest not in read(list_file):
        raise NotAllowed(
            f"this program (SHA-256 {digest}) is not one that the stack command was given, so it is not run: "
            "see --functions and --allow of localstack/stack"
        )


def _list_of_this_stack() -> Path | None:
    file = os.environ.get("COLOPHON_ALLOWED")
    return Path(file) if file else None


LIST = _list_of_this_stack()
