"""A benchmark's last finished row against a case: which shape was being run when it stopped."""

from __future__ import annotations

from dataclasses import dataclass

from cudadiag.model import Scalar, Shape, Sweep
from cudadiag.triage.table import Row


@dataclass(frozen=True)
class NextShape:
    """The shape after the last finished row. `shape` is None where there is none or it cannot be told; `note` says
    why, or how it was found."""

    shape: Shape | None
    note: str


def next_shape(row: Row, sweep: Sweep) -> NextShape:
    """The shape that follows, in sweep order, the one a row is of.

    Columns are matched to the sweep's parameters by name. Parameters that the table does not show are taken to have
    gone round: of several shapes that fit a row the last one counts.
    """
    names = [axis.name for axis in sweep.axes]
    columns = {_plain(column): value for column, value in row.cells.items()}
    shown = [name for name in names if _plain(name) in columns]
    if not shown:
        return NextShape(None, f"no column of the table is a parameter of the sweep ({', '.join(names)})")
    fitting = [i for i in range(len(sweep)) if _fits(sweep.shape(i), columns, shown)]
    if not fitting:
        told = ", ".join(f"{name}={columns[_plain(name)]}" for name in shown)
        return NextShape(None, f"the last finished row ({told}) is no shape of the sweep")
    last = fitting[-1]
    if last + 1 >= len(sweep):
        return NextShape(None, "the last finished row is the sweep's last shape: all of it ran")
    hidden = [name for name in names if name not in shown]
    note = f"the table does not show {', '.join(hidden)}" if hidden else "follows the last finished row in sweep order"
    return NextShape(sweep.shape(last + 1), note)


def _plain(name: str) -> str:
    return "".join(c for c in name.lower() if c.isalnum())


def _fits(shape: Shape, columns: dict[str, Scalar], shown: list[str]) -> bool:
    return all(_same(shape[name], columns[_plain(name)]) for name in shown)


def _same(value: Scalar, cell: Scalar) -> bool:
    if isinstance(value, bool | str):
        return str(value).lower() == str(cell).lower()
    return not isinstance(cell, str) and float(value) == float(cell)
