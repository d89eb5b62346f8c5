"""Measuring speed: what `lqcd-aot bench` and `make bench` print. Ratios within one run are the result; absolute figures orient.

suite.py        axes -> specs -> the report: one JSON object
artifacts.py    the artifacts of a benchmark, exactly those that today's templates make
rows.py         one row per (operator, dtype, storage, lattice, batch, fused, threads), next to its roof
operators.py    a Dirac artifact under the clock, next to torch eager
solvers.py      a solver artifact under the clock: an iteration, and a solve to 1e-10
work.py         flops, least bytes, working set of a row
timing.py       repeat a call: warm-up, then the median over rounds with its spread
machine.py      CPUs, caches, pinning, a description without names
probes.py       FMA peak, bandwidth, round trip of a cache line: the loops of speed.cpp, compiled as artifacts are
roofline.py     those figures for every level of memory, and the roof of a row
guard.py        rows of several threads are discarded when the CPUs were moved meanwhile
series.py       the lattices at which a series leaves the roofline, with the reason
compare.py      ratios to an older report           peer.py   another program's benchmark in turns with ours
start_up.py     fresh processes, step by step to the first propagator column
page.py plot.py the report as one HTML page with roofline plots
neuron_rows.py  one row per (lattice, batch) of a NeuronCore, as lqcd-neuron prints them
neuron_report.py  the report of `lqcd-aot neuron-check`
"""
