"""Doubles of AWS's closed programs, so that everything up to them can be built, run and tested on any machine.

    neuronx_cc.py   a program with the command line of `neuronx-cc`: validates the HLO, writes a NEFF-SIM container
    script.py       failures on request, for tests of what drives the compiler
    version.py      the version it announces

They prove the programs and the machinery around the compiler, never the compiler or the chip. A NEFF-SIM is no NEFF: the runtime
refuses it for every Neuron target, and the driver of the real compiler refuses it as output.
"""
