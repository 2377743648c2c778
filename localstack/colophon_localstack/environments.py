"""The Lambda environments that live in this LocalStack: what tests look up, and what is ended with it."""

from __future__ import annotations

import threading
from typing import Any, Protocol


class Environment(Protocol):
    def describe(self) -> dict[str, Any]: ...

    def kill(self) -> None: ...


class Environments:
    """A set that may be asked and changed from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._members: dict[int, Environment] = {}

    def add(self, environment: Environment) -> None:
        with self._lock:
            self._members[id(environment)] = environment

    def remove(self, environment: Environment) -> None:
        with self._lock:
            self._members.pop(id(environment), None)

    def describe(self) -> list[dict[str, Any]]:
        with self._lock:
            members = list(self._members.values())
        return [member.describe() for member in members]

    def kill_all(self) -> None:
        with self._lock:
            members, self._members = list(self._members.values()), {}
        for member in members:
            member.kill()


ENVIRONMENTS = Environments()
