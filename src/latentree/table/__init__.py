"""One door for data: arrays, frames and sparse matrices become a checked, coded table."""

from latentree.table.convert import as_table
from latentree.table.table import Family, Schema, Table

__all__ = ["Family", "Schema", "Table", "as_table"]
