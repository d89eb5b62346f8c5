"""Iterative solvers: one text for numpy and torch, many right-hand sides at once, judged by the true residual only.

    cg.py          conjugate gradient for Hermitian positive operators
    bicgstab.py    stabilised bi-conjugate gradient for general operators
    gcr.py         generalised conjugate residual, restarted, for general operators
    multishift.py  conjugate gradient for A + sigma_i, all shifts from one Krylov space
    mixed.py       defect correction: inner solves in low precision, residuals in high precision
    dirac.py       the door for Dirac operators (`lqcd_runtime.solve`)
    choice.py      who iterates: a solver artifact of the operator's bundle, or the host
    compiled.py    the loop around a solver artifact; compiled_column.py: what is known of one column
    ledger.py      bookkeeping of columns: scaling, acceptance, stagnation, freezing
    space.py       the few vector operations over [columns, ...] arrays of numpy or torch
    result.py      Reason, ColumnInfo, SolveInfo

An operator is any callable from [columns, ...] to [columns, ...]. Arrays passed in are never written to, so an
interrupt leaves nothing half-done. Failure is a value (`info.reason`, with prose), never an exception; nothing prints.
"""

from __future__ import annotations

from lqcd_runtime.solvers.bicgstab import bicgstab
from lqcd_runtime.solvers.cg import cg
from lqcd_runtime.solvers.dirac import solve
from lqcd_runtime.solvers.gcr import gcr
from lqcd_runtime.solvers.mixed import defect_correction
from lqcd_runtime.solvers.multishift import multishift_cg
from lqcd_runtime.solvers.result import ColumnInfo, Reason, SolveInfo

__all__ = ["ColumnInfo", "Reason", "SolveInfo", "bicgstab", "cg", "defect_correction", "gcr", "multishift_cg", "solve"]
