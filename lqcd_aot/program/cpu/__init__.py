"""CPU programs: C++ templates specialised by constants. See the package docstring of lqcd_aot.program for the files."""
