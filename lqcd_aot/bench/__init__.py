"""Measuring speed: what `lqcd-aot bench` and `make bench` print. Ratios within one run are the result; absolute figures orient.

timing.py      repeat a call: warm-up, then the median over rounds with its spread
operators.py   one row per (operator, dtype, lattice, batch, fused, threads), next to torch eager in the same run
solvers.py     one row per solver artifact: an iteration
start_up.py    fresh processes: import of the runtime, first applied operator, and the share of numpy's import
roofline.py    FMA peak and bandwidth of this machine, measured
"""
