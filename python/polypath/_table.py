"""Tables of results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

if TYPE_CHECKING:
    import pandas
    import polars
    import xarray


class ArrowStream(Protocol):
    """Anything with the Arrow PyCapsule interface."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The stream."""


class Table:
    """A table of Arrow columns.

    It has the Arrow PyCapsule interface, so libraries that know it (pyarrow, polars, DuckDB, pandas 3) take it as it is, without
    a copy: ``polars.DataFrame(numbers)``, ``duckdb.sql("from numbers")``.
    """

    def __init__(self, source: ArrowStream) -> None:
        self._arrow: pa.Table = source if isinstance(source, pa.Table) else pa.table(source)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The Arrow PyCapsule interface."""
        return self._arrow.__arrow_c_stream__(requested_schema)

    def to_arrow(self) -> pa.Table:
        """As ``pyarrow.Table``, without a copy."""
        return self._arrow

    def to_pandas(self) -> pandas.DataFrame:
        """As ``pandas.DataFrame``."""
        return self._arrow.to_pandas()

    def to_polars(self) -> polars.DataFrame:
        """As ``polars.DataFrame``, without a copy of numbers."""
        import polars

        frame = polars.from_arrow(self._arrow)
        assert isinstance(frame, polars.DataFrame)
        return frame

    def to_xarray(self, index: list[str]) -> xarray.Dataset:
        """As ``xarray.Dataset`` with the columns ``index`` for dimensions: what they say together must name one row."""
        return self.to_pandas().set_index(index).to_xarray()

    def to_dict(self) -> dict[str, list[Any]]:
        """As lists, by column."""
        return self._arrow.to_pydict()

    def where(self, **columns: object) -> Table:
        """The rows in which each of these columns has this value; ``None`` is null."""
        import pyarrow.compute as pc

        table = self._arrow
        for name, value in columns.items():
            if name not in table.column_names:
                raise KeyError(f"there is no column {name!r}; there are: {', '.join(table.column_names)}")
            column = table[name]
            table = table.filter(pc.is_null(column) if value is None else pc.equal(column, value))
        return Table(table)

    def __getitem__(self, column: str) -> pa.ChunkedArray:
        return self._arrow[column]

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return self._arrow.column_names

    def __len__(self) -> int:
        return self._arrow.num_rows

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Table) and self._arrow.equals(other._arrow)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<polypath.Table of {len(self)} rows: {', '.join(self.columns)}>"

    def _repr_html_(self) -> str:
        shown = self._arrow.slice(0, 20).to_pandas()
        more = f"<p>{len(self)} rows</p>" if len(self) > 20 else ""
        return f"{shown._repr_html_()}{more}"
