"""From a variant to the program that a compiler turns into an artifact.

Owns: `Program` (source files, constants, entry file, digest) and `program_for(spec, target)`. Refuses to know: compilers,
stores, recipes. What a program cannot express is refused here, with the reason, before any compiler is called.

    model.py         Program and its digest
    cpu/variant.py   which entry file and constants a spec needs; what is refused
    cpu/sources.py   the files an entry file reaches by #include
    cpu/templates/   the C++ templates; README.md there is their map
"""

from lqcd_aot.program.cpu.variant import program_for
from lqcd_aot.program.model import Program

__all__ = ["Program", "program_for"]
