"""Engines: each loads one kind of machine code and calls it. The engine is chosen by the entry's target, never by a guess.

cpu.py      shared objects through ctypes: `load`, `CpuArtifact`
library.py  bytes -> dlopen handle without leaving anything on disk
memory.py   aligned buffers
"""
