"""The numbers of a figure as one tidy table, which becomes `data.csv`."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd

from metabo.errors import ConfigError, nearest

RESERVED = ("artefact", "benchmark", "table", "quantity", "value")
"""Headings of every data.csv, whatever the keys of its tables."""
_NUMERIC = ("integer", "floating", "boolean", "mixed-integer-float", "integer-na", "empty")
"""What `pandas.api.types.infer_dtype` calls a column of numbers; it also looks into columns of objects."""


def numbers(tables: Mapping[str, pd.DataFrame], keys: Sequence[str], artefact: str = "figure") -> pd.DataFrame:
    """Join tables into one tidy table, one number per row: table, `keys`, quantity, value.

    A table's keys are those of `keys` that it has; its other columns are quantities. Raises ConfigError for what is no
    table, for a key that no table has, for a column with a heading of every data.csv, for one that is no key and has
    no numbers, and for rows of a table that its keys do not tell apart.
    """
    for name, table in tables.items():
        if not isinstance(table, pd.DataFrame):
            kind = type(table).__name__
            raise ConfigError(f"{artefact}, table '{name}': {kind} is no DataFrame; give one, with `keys` as columns")
    columns = {column for table in tables.values() for column in table}
    for key in keys:
        if key not in columns:
            raise ConfigError(
                f"{artefact}: key '{key}' is a column of none of its tables, {', '.join(tables)}; correct it in "
                f"`keys` or leave it out.{nearest(key, columns)}"
            )
    parts = [part for name, table in tables.items() for part in _long(table, keys, f"{artefact}, table '{name}'", name)]
    joined = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()
    for key in keys:
        held = [part[key] for part in parts if key in part]
        if held and all(map(pd.api.types.is_integer_dtype, held)):
            joined[key] = joined[key].astype("Int64")  # else tables without it would make 3.0 of a 3
    return joined.reindex(columns=["table", *keys, "quantity", "value"])


def _long(table: pd.DataFrame, keys: Sequence[str], where: str, name: str) -> Iterator[pd.DataFrame]:
    """Give one table's numbers, one frame per quantity; none for a table without rows."""
    own = [key for key in keys if key in table]
    for column in table:
        if column in RESERVED and (column in own or column != "value"):  # a quantity may be called value
            raise ConfigError(
                f"{where}, column '{column}': a heading of every data.csv is no key and no quantity; give the column "
                "another name"
            )
    quantities = [column for column in table if column not in own]
    for column in quantities:
        if pd.api.types.infer_dtype(table[column]) not in _NUMERIC:
            raise ConfigError(
                f"{where}, column '{column}': neither numeric nor a key; add it to `keys` or leave the column out"
            )
    repeated = table.duplicated(own) if own else pd.Series(np.arange(len(table)) > 0, table.index)
    if repeated.any():
        shown = ", ".join(f"{key} {value}" for key, value in table.loc[repeated, own].iloc[0].items())
        alike = f", columns {', '.join(own)}: two rows agree in them ({shown})" if own else ": several rows, no key"
        raise ConfigError(f"{where}{alike}; add the column in which they differ to `keys`")
    for quantity in quantities if len(table) else []:
        yield table[own].assign(table=name, quantity=quantity, value=table[quantity].astype(np.float64))


def require_known(data: pd.DataFrame, infinite: Sequence[str], artefact: str) -> None:
    """Refuse what `numbers` gives if it shows nothing: no rows, no number at all, or an infinite one in a table that is
    not among `infinite`. Raises ConfigError. A number that is missing beside others is an empty cell."""
    if data.empty:
        raise ConfigError(f"{artefact}: its tables have no rows; check what selects them, and the inputs")
    if data["value"].isna().all():
        raise ConfigError(
            f"{artefact}: no number in its tables, {', '.join(data['table'].unique())}: all are NaN; check how they "
            "are computed, and the inputs"
        )
    wrong = data[np.isinf(data["value"]) & ~data["table"].isin(infinite)]
    if len(wrong):
        table, quantity = wrong.iloc[0][["table", "quantity"]]
        alike = (wrong["table"] == table) & (wrong["quantity"] == quantity)
        size = ((data["table"] == table) & (data["quantity"] == quantity)).sum()
        raise ConfigError(
            f"{artefact}, table '{table}', column '{quantity}': {alike.sum()} of {size} numbers infinite; mend the "
            f"computation (a division by zero?), or say that infinity is meant: `save(..., infinite=['{table}'])`"
        )
