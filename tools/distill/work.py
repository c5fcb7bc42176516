"""The folder of a run: what is done, how much time it took, and whether the user wants to stop.

Everything is written so that a crash at any moment loses at most the last minute: files are replaced as a whole or
appended to line by line."""

import json
import os
import shutil
import signal
import sys
import time
from pathlib import Path
from types import FrameType
from typing import IO, Callable

from .problem import Problem, Stopped
from .settings import Settings


def replace_file(path: Path, write: Callable[[IO[bytes]], None]) -> None:
    """A reader finds the old file or the new one, even after a crash."""
    part = path.with_name(path.name + ".part")
    with part.open("wb") as file:
        write(file)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


def write_json(path: Path, value: object) -> None:
    replace_file(path, lambda file: void(file.write(json.dumps(value, indent=1).encode() + b"\n")))


def void(_: object) -> None:
    pass


class Work:
    def __init__(self, settings: Settings):
        self.settings = settings
        self.folder = settings.work
        self._stopping = False
        self._begun = time.monotonic()
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._check_settings()
        except OSError as error:
            raise Problem(f"--work {self.folder}: {error.strerror}; name a folder that can be written to") from error
        progress = self.path("progress.json")
        self._spent: float = json.loads(progress.read_text())["seconds"] if progress.exists() else 0.0

    def path(self, name: str) -> Path:
        return self.folder / name

    def _check_settings(self) -> None:
        kept, now = self.path("settings.json"), json.loads(json.dumps(self.settings.lasting()))
        if not kept.exists():
            write_json(kept, now)
            return
        then = json.loads(kept.read_text())
        different = sorted(name for name in now if now[name] != then.get(name))
        if different:
            names = ", ".join(f"{name} ({then.get(name)}, now {now[name]})" for name in different)
            raise Problem(f"{self.folder} has a run with other settings: {names}; give the same ones to continue it, "
                          f"another --work, or delete the folder")

    # Time, over all runs that were continued.

    def seconds(self) -> float:
        return self._spent + time.monotonic() - self._begun

    def budget(self) -> float:
        return self.settings.hours * 3600

    def keep_time(self) -> None:
        write_json(self.path("progress.json"), {"seconds": self.seconds()})

    # Stopping.

    def catch_signals(self) -> None:
        """The first SIGINT or SIGTERM lets the present step finish, the second ends the program at once."""

        def stop(number: int, _: FrameType | None) -> None:
            if self._stopping:
                os._exit(128 + number)
            self._stopping = True
            say("stopping … (once more to stop at once)")

        signal.signal(signal.SIGINT, stop)
        signal.signal(signal.SIGTERM, stop)

    @property
    def stopping(self) -> bool:
        return self._stopping

    def check_stop(self) -> None:
        if self._stopping:
            self.keep_time()
            raise Stopped

    def need_space(self, folder: Path, size: int, what: str) -> None:
        free = shutil.disk_usage(folder).free
        if free < size + (64 << 20):
            raise Problem(f"{what} need {size / 1e9:.1f} GB, but {folder} has only {free / 1e9:.1f} GB free: make room, "
                          f"name another --work, or give fewer --tokens")


_start = time.monotonic()


def say(text: str) -> None:
    print(f"[{time.monotonic() - _start:7.1f} s] {text}", file=sys.stderr, flush=True)
