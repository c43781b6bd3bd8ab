"""Downloading the newsgroups, from a server of our own on this machine."""

from __future__ import annotations

import io
import logging
import sys
import threading
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from scipy.io import savemat
from scipy.sparse import csc_array

from latentree.datasets import load_newsgroups
from latentree.datasets._fetching import FILE, SHA256, digest, fetch_postings
from latentree.errors import DataError, FileError, MissingExtraError

WORDS = ("car", "god", "nasa", "windows", "über")
GROUPS = ("comp.*", "rec.*", "sci.*", "talk.*")
USED = np.random.default_rng(0).integers(0, 2, (40, 5)).astype(np.int8)
NUMBERS = np.arange(40) // 10
CONTENT = digest(WORDS, USED, np.array(GROUPS)[NUMBERS])


def packed(used=USED, words=WORDS, numbers=NUMBERS, sparse=True, **others):
    """Bytes of a MATLAB file like that of the newsgroups."""
    documents = used.T.astype(np.float64)
    content = {
        "documents": csc_array(documents) if sparse else used.T.astype(bool),
        "wordlist": np.array([words], object),
        "newsgroups": (numbers + 1.0)[None, :],
        "groupnames": np.array([GROUPS], object),
    }
    stream = io.BytesIO()
    savemat(stream, content | others, do_compression=True)
    return stream.getvalue()


class Server:
    """Answers every request with the same bytes, and counts them."""

    def __init__(self, body=b"", status=200, length=None):
        self.body, self.status, self.asked = body, status, 0
        self.length = len(body) if length is None else length

    @contextmanager
    def running(self):
        ours = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                ours.asked += 1
                self.send_response(ours.status)
                self.send_header("Content-Length", str(ours.length))
                self.end_headers()
                self.wfile.write(ours.body)

            def log_message(self, *_):
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/{FILE}"
        finally:
            server.shutdown()
            thread.join()
            server.server_close()


@pytest.fixture
def cache(monkeypatch, tmp_path):
    """A new cache, and no waiting between trials."""
    folder = tmp_path / "cache"
    monkeypatch.delenv("LATENTREE_DATA", raising=False)
    monkeypatch.setenv("LATENTREE_CACHE", str(folder))
    monkeypatch.setattr("pooch.core.time.sleep", lambda seconds: None)
    logging.getLogger("pooch").setLevel(logging.ERROR)
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    return folder


def fetch(*servers):
    """Fetch the small data above, with these servers as its homes."""
    with ExitStack() as running:
        homes = [running.enter_context(server.running()) for server in servers]
        return fetch_postings(homes, CONTENT)


def files(folder):
    return sorted(file.name for file in folder.iterdir()) if folder.exists() else []


@pytest.mark.parametrize("sparse", [True, False])
def test_downloaded_once_and_then_without_a_network(cache, sparse):
    server = Server(packed(sparse=sparse))
    first = fetch(server)
    again = fetch(server)
    for words in (first, again):
        assert words.words == WORDS
        assert np.array_equal(words.used, USED)
        assert words.used.dtype == np.int8
        assert words.group.tolist() == [GROUPS[k] for k in NUMBERS]
    assert server.asked == 1
    assert files(cache) == [FILE]


def test_the_real_content_passes_the_real_check(paper_data, cache, monkeypatch):
    monkeypatch.setenv("LATENTREE_DATA", str(paper_data))
    here = load_newsgroups()
    groups = here.rows["group"]
    numbers = np.searchsorted(GROUPS, groups)
    monkeypatch.delenv("LATENTREE_DATA")
    cache.mkdir()
    (cache / FILE).write_bytes(packed(here.data, here.names, numbers))
    fetched = load_newsgroups()
    assert fetched.names == here.names
    assert np.array_equal(fetched.data, here.data)
    assert np.array_equal(fetched.rows["group"], groups)
    assert set(fetched.rows) == {"group"}  # the paper's halves are not public
    assert fetched.groups == here.groups
    wrong = here.data.copy()
    wrong[5000, 50] ^= 1
    assert digest(here.names, wrong, groups) != SHA256


def test_the_checksum_is_of_the_content_in_any_order():
    rng = np.random.default_rng(1)
    rows, columns = rng.permutation(40), rng.permutation(5)
    groups = np.array(GROUPS)[NUMBERS]
    words = [WORDS[j] for j in columns]
    assert digest(words, USED[rows][:, columns], groups[rows]) == CONTENT
    assert digest(words, USED[rows], groups[rows]) != CONTENT
    assert digest(WORDS, USED, groups[::-1]) != CONTENT


OTHER = USED.copy()
OTHER[3, 2] ^= 1


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (packed(OTHER), f"other data: its content has the checksum .* expected {CONTENT}"),
        (packed(words=(*WORDS[:4], "uber")), "other data"),
        (packed(numbers=(NUMBERS + 1) % 4), "other data"),
        (packed(numbers=NUMBERS[:39]), "not the MATLAB file"),
        (packed(numbers=NUMBERS + 9), "not the MATLAB file"),
        (packed(numbers=NUMBERS - 1), "not the MATLAB file"),
        (packed()[:-40], "not the MATLAB file"),
        (packed()[:200] + bytes(50) + packed()[250:], "not the MATLAB file"),
        (b"<html>moved</html>", "not the MATLAB file"),
        (b"", "not the MATLAB file"),
    ],
)
def test_what_fails_the_check_is_not_kept(cache, body, message):
    with pytest.raises(DataError, match=message):
        fetch(Server(body))
    assert files(cache) == []


def test_a_download_that_breaks_off_is_not_kept(cache):
    server = Server(packed()[:500], length=len(packed()))
    with pytest.raises(DataError, match="broken off"):
        fetch(server)
    assert server.asked == 2  # tried again once
    assert files(cache) == []


@pytest.mark.parametrize("status", [404, 503])
def test_a_server_that_refuses_is_quoted(cache, status):
    message = rf"the server answered {status} .*put {FILE} into .*set LATENTREE_DATA"
    with pytest.raises(DataError, match=message):
        fetch(Server(status=status))
    assert files(cache) == []


def test_without_a_network_the_error_says_what_to_do(cache):
    with Server().running() as url:
        pass  # nobody listens there any more
    with pytest.raises(DataError, match=f"no connection.*working network.*{FILE}.*LATENTREE_DATA"):
        fetch_postings([url], CONTENT)


@pytest.mark.parametrize("first", [Server(status=404), Server(b"moved")])
def test_the_second_home_serves_when_the_first_does_not(cache, first):
    assert np.array_equal(fetch(first, Server(packed())).used, USED)


def test_a_file_damaged_in_the_cache_is_fetched_anew(cache):
    cache.mkdir()
    (cache / FILE).write_bytes(packed()[:300])
    assert np.array_equal(fetch(Server(packed())).used, USED)


def test_a_cache_that_cannot_be_written_to(cache):
    cache.write_text("a file where the folder should be")
    server = Server(packed())
    with pytest.raises(FileError, match=r"set .* LATENTREE_CACHE"):
        fetch(server)
    assert server.asked == 0


def test_without_pooch_the_error_names_the_extra(cache, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'latentree\[data\]'"):
        load_newsgroups()
