"""In place of the package wget, which llama.cpp's tests import; nothing is downloaded here."""


def download(url, out=None):
    raise RuntimeError(f"no downloads in this run: {url}")
