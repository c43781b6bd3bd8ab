"""Documents from files of all kinds, and files that cannot be read."""

from __future__ import annotations

import csv
import gzip
import itertools
import json
import os

import pytest

from latentree.errors import DataWarning, FileError, MemoryBudgetError
from latentree.topics import Document, as_date, read_documents
from latentree.topics._corpus import read_corpus
from latentree.topics._documents import MOST_CHARACTERS

ROWS = [("One, two\nthree", "a", "2020-05-01"), ('A "quoted" ünïcode text', "b", "2021-01")]


def write_csv(path, encoding="utf-8", opened=open):
    with opened(path, "wt", encoding=encoding, newline="") as file:
        csv.writer(file).writerows([("text", "who", "when"), *ROWS])
    return path


EXPECTED = [
    Document("One, two\nthree", "a", "2020-05-01"),
    Document('A "quoted" ünïcode text', "b", "2021-01-01"),
]


def test_tables_of_texts(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet

    rows = [dict(zip(("text", "who", "when"), row, strict=True)) for row in ROWS]
    (tmp_path / "d.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n\n", "utf-8")
    pa.parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "d.parquet")
    write_csv(tmp_path / "d.csv", "utf-8-sig")
    write_csv(tmp_path / "d.csv.gz", opened=gzip.open)
    for name in ("d.jsonl", "d.parquet", "d.csv", "d.csv.gz"):
        found = read_documents(tmp_path / name, "text", name="who", date="when")
        assert list(found) == list(found) == EXPECTED  # it can be read again
        assert [document.text for document in read_documents(tmp_path / name)] == [
            text for text, *_ in ROWS
        ]


def test_a_folder_of_texts(tmp_path):
    (tmp_path / "b").mkdir()
    (tmp_path / "a.txt").write_text("One\ntwo", "utf-8")
    (tmp_path / "b" / "c.md").write_text("Three", "utf-8")
    (tmp_path / "notes.docx").write_bytes(b"other")
    assert [document.text for document in read_documents(tmp_path)] == ["One\ntwo", "Three"]


def test_a_single_text_file_has_a_document_a_line(tmp_path):
    (tmp_path / "a.txt").write_text("One\ntwo\n", "utf-8")
    assert [document.text for document in read_documents(tmp_path / "a.txt")] == ["One", "two"]


def pdf(text):
    """A PDF of one page with one line, by hand."""
    stream = f"BT /F1 12 Tf 20 100 Td ({text}) Tj ET".encode()
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 200] /Contents 4 0 R "
        b"/Resources << /Font << /F1 5 0 R >> >> >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    out, places = b"%PDF-1.4\n", []
    for number, each in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, each)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    head = b"xref\n0 6\n0000000000 65535 f \n" + table
    return out + head + b"trailer << /Size 6 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF" % len(out)


def test_pdfs(tmp_path):
    pytest.importorskip("pypdf")
    (tmp_path / "a.pdf").write_bytes(pdf("Budget of the city"))
    assert [document.text.strip() for document in read_documents(tmp_path)] == [
        "Budget of the city"
    ]
    (tmp_path / "b.pdf").write_bytes(b"no PDF at all")
    with pytest.raises(FileError, match=r"b\.pdf: cannot be read as PDF"):
        list(read_documents(tmp_path))


DAMAGED = bytearray(gzip.compress(bytes(range(65, 91)) * 400, 1, mtime=0))
DAMAGED[12:40] = b"\xff" * 28  # no block of deflate


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"", "is empty"),
        ("a.csv", "text\nna\u00efve".encode("latin-1"), "encoding"),
        ("a.csv", b"one,two\n1,2", "say which column"),
        ("a.csv.gz", b"\x1f\x8b broken", "damaged|gzip"),
        ("a.jsonl", b'{"text": 1}', "the text is a int"),
        ("a.jsonl", b'{"text": "a"}\nnonsense', "line 2: is no JSON"),
        ("a.jsonl", b"[1]", "must be an object"),
        ("a.parquet", b"nonsense", "cannot be read as Parquet"),
        ("a.docx", b"", "documents are read from"),
        ("a.csv.gz", gzip.compress(b"text\n" + b"rain\n" * 99, mtime=0)[:-20], "damaged"),
        ("a.csv.gz", DAMAGED, "damaged"),
        (
            "a.txt.gz",
            gzip.compress(b"rain " * (MOST_CHARACTERS // 4), mtime=0),
            "line 1: a document has",
        ),
        (
            "a.csv.gz",
            gzip.compress(b"text\n" + b"," * (MOST_CHARACTERS + 1), mtime=0),
            "line 2: a document",
        ),
        (
            "a.csv.gz",
            gzip.compress(b'text\n"' + (b"rain" * 10**5 + b"\n") * 99, mtime=0),
            "a document has",
        ),
        ("a.jsonl", b'{"text": ' + b"[" * 10**5, "line 1: nests lists or dicts too deeply"),
        ("a.jsonl", b'{"text": ' + b'{"a":' * 10**5, "line 1: nests lists or dicts too deeply"),
    ],
)
def test_files_that_cannot_be_read_are_named(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(FileError, match=f"{name}.*({message})"):
        list(read_documents(tmp_path / name))


def test_a_document_of_a_folder_is_bounded_too(tmp_path):
    lines = (b"rain and snow\n" * 2**16) * 40
    (tmp_path / "bomb.txt.gz").write_bytes(gzip.compress(lines, mtime=0))
    with pytest.raises(FileError, match=r"bomb\.txt\.gz, line .*: a document has more than"):
        list(read_documents(tmp_path))


def test_more_tokens_than_memory_are_refused(monkeypatch):
    monkeypatch.setenv("LATENTREE_MEMORY", "1GB")
    documents = itertools.repeat("rain")
    with pytest.raises(MemoryBudgetError, match="documents and more would need"):
        read_corpus(documents, lambda _: itertools.repeat("rain", 2**20), ())


@pytest.mark.skipif(os.name != "posix", reason="links need rights on Windows")
def test_links_out_of_a_folder_are_left_out_and_named(tmp_path):
    (tmp_path / "secret.txt").write_text("not to be read")
    folder = tmp_path / "folder"
    (folder / "below").mkdir(parents=True)
    (folder / "a.txt").write_text("One.")
    (folder / "below" / "inside.txt").symlink_to(folder / "a.txt")
    (folder / "outside.txt").symlink_to(tmp_path / "secret.txt")
    (folder / "up").symlink_to(tmp_path)
    with pytest.warns(DataWarning, match=r"outside\.txt"):
        found = list(read_documents(folder))
    assert [document.text for document in found] == ["One.", "One."]
    # What a person names is read, wherever it is.
    assert len(list(read_documents(folder / "outside.txt"))) == 1


def test_other_encodings_can_be_told(tmp_path):
    (tmp_path / "a.csv").write_bytes("text\nna\u00efve\n".encode("latin-1"))
    found = read_documents(tmp_path / "a.csv", encoding="latin-1")
    assert [document.text for document in found] == ["na\u00efve"]
    with pytest.raises(FileError, match="no encoding 'klingon'"):
        read_documents(tmp_path / "a.csv", encoding="klingon")


def test_columns_that_are_not_there_are_named(tmp_path):
    write_csv(tmp_path / "a.csv")
    for wrong in ({"text": "body"}, {"date": "day"}, {"name": "title"}):
        with pytest.raises(FileError, match="there are text, who, when"):
            list(read_documents(tmp_path / "a.csv", **wrong))


def test_places_without_documents_are_named(tmp_path):
    with pytest.raises(FileError, match="no such file"):
        read_documents(tmp_path / "nothing")
    with pytest.raises(FileError, match="no documents in this folder"):
        read_documents(tmp_path)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("2020", "2020-01-01"), ("2020-07", "2020-07-01"), ("2020-07-09T10:00", "2020-07-09"),
        ("2020-13-01", ""), ("yesterday", ""), (None, ""), (2020, "2020-01-01"),
    ],
)  # fmt: skip
def test_dates(given, expected):
    assert as_date(given) == expected
