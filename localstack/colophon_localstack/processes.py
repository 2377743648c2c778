"""Which processes this stack has started, kept in files, so that ending the stack ends exactly those.

A file is named by the process id and holds the time the process started: a later process that was given the same
number has another, and is left alone.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import psutil


# The system reckons a start from its boot, and that from a clock that is corrected now and then.
SAME_START_SECONDS = 2.0


class ProcessBook:
    """The processes noted in ``folder``; with no folder, nothing is noted."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def record(self, pid: int, name: str) -> None:
        """Notes a process that has just been started."""
        if self._folder is None:
            return
        started = start_time(pid)
        if started is None:
            return  # already gone
        self._folder.mkdir(parents=True, exist_ok=True)
        self._forget_the_dead_now_and_then()
        (self._folder / str(pid)).write_text(f"{started}\n{name}\n")

    def alive(self) -> dict[int, str]:
        """Process ids and names of those noted that still run. Forgets the others."""
        found: dict[int, str] = {}
        for entry in list(self._folder.iterdir()) if self._folder and self._folder.is_dir() else []:
            try:
                pid, (started, name) = int(entry.name), entry.read_text().split("\n")[:2]
            except (ValueError, OSError):
                continue
            if (now := start_time(pid)) is not None and abs(now - float(started)) < SAME_START_SECONDS:
                found[pid] = name
            else:
                entry.unlink(missing_ok=True)
        return found

    def end_all(self, first: str | None = None, grace_seconds: float = 0) -> list[str]:
        """Ends all that are noted and their process groups: ``first`` is asked to end and given its time, then
        whatever is left is killed. Returns the names of those that outlived even that."""
        for pid, name in self.alive().items():
            if name == first:
                _signal(pid, signal.SIGTERM)
                _wait({pid}, grace_seconds)
        for pid in self.alive():
            _signal(pid, signal.SIGKILL)
        _wait(set(self.alive()), 5)
        return list(self.alive().values())

    def _forget_the_dead_now_and_then(self) -> None:
        assert self._folder
        if sum(1 for _ in self._folder.iterdir()) >= 256:
            self.alive()


def start_time(pid: int) -> float | None:
    """When the process started; None if there is none, or it has ended and only waits for its parent."""
    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else process.create_time()
    except psutil.Error:
        return None


def _signal(pid: int, number: signal.Signals) -> None:
    try:
        if os.getpgid(pid) == pid:  # all that is started here leads a process group
            os.killpg(pid, number)
        else:
            os.kill(pid, number)
    except ProcessLookupError:
        pass


def _wait(pids: set[int], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and any(start_time(pid) is not None for pid in pids):
        time.sleep(0.02)


def _book_of_this_stack() -> ProcessBook:
    folder = os.environ.get("COLOPHON_PROCESSES")
    return ProcessBook(Path(folder) if folder else None)


PROCESSES = _book_of_this_stack()
