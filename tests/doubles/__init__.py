"""Doubles of closed native software for tests: libnrt in C (libnrt_double.c, loaded by libnrt.py), nrtpy in Python (nrtpy.py)."""
