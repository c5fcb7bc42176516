"""In place of the package filelock: one process runs all tests."""

import contextlib


@contextlib.contextmanager
def FileLock(path):
    yield
