"""Data on its way in: one door for frames, arrays, sparse matrices, files and dask collections.

:func:`as_table` checks and codes data in memory; :func:`as_parts` opens data that need not fit
into memory as a fixed sequence of tables. A :class:`Schema` holds names, family and labels.
"""

from latentree.data._checks import (
    check_distinct,
    default_names,
    duplicate_columns,
    is_number,
    listing,
    refuse_columns,
    row_chunks,
)
from latentree.data._cluster import Client
from latentree.data._convert import as_table
from latentree.data._files._file_rows import list_files
from latentree.data._files._matrix_files import MATRICES
from latentree.data._files._paths import STANDARD, is_path, path_name, suffix_of
from latentree.data._files._whole import WholeFiles, open_whole
from latentree.data._files._writers import check_writable, table_writer, write_table
from latentree.data._frames import (
    FrameType,
    column_names,
    filled_like,
    frame_of,
    frame_type,
    missing_cells,
    with_columns,
)
from latentree.data._opening import as_parts, is_parted, open_table
from latentree.data._parts import Parts, cut_table, part_cells, part_rows
from latentree.data._pieces import LocalPieces, Pieces, add_up
from latentree.data._table import (
    FAMILIES,
    KINDS,
    ColumnKind,
    NumberFormat,
    Schema,
    SetAside,
    Table,
    WithSchema,
    stacked,
)

__all__ = [
    "FAMILIES",
    "KINDS",
    "MATRICES",
    "STANDARD",
    "Client",
    "ColumnKind",
    "FrameType",
    "LocalPieces",
    "NumberFormat",
    "Parts",
    "Pieces",
    "Schema",
    "SetAside",
    "Table",
    "WholeFiles",
    "WithSchema",
    "add_up",
    "as_parts",
    "as_table",
    "check_distinct",
    "check_writable",
    "column_names",
    "cut_table",
    "default_names",
    "duplicate_columns",
    "filled_like",
    "frame_of",
    "frame_type",
    "is_number",
    "is_parted",
    "is_path",
    "list_files",
    "listing",
    "missing_cells",
    "open_table",
    "open_whole",
    "part_cells",
    "part_rows",
    "path_name",
    "refuse_columns",
    "row_chunks",
    "stacked",
    "suffix_of",
    "table_writer",
    "with_columns",
    "write_table",
]
