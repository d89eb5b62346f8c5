"""The face of lqcd-neuron over build and runtime: compile an operator module once, call it on torch tensors.

    engine.py        which engine, target and dtype, and the line that says so
    modules.py       torch module -> operator word and run-time inputs
    fusion.py        fused or not, how many slabs: by estimates, with the line that says so
    artifacts.py     specs -> artifacts, through keys and store
    torch_trace.py   torch_neuronx.trace as a second way to the artifact of a spec
    compiler.py      NeuronCompiler
    compiled.py      CompiledOperator: what compile_dslash* return
    half_lattice.py  CompiledHop: even-odd hops; pack_checkerboard, unpack_checkerboard
    measured.py      CompiledObservable: what compile_plaquette and compile_observable return
    device.py        NeuronDevice, get_device, is_neuron_available
    param.py         NeuronCompileParam

Every route was run on the CPU engine, on the simulator and on doubles of AWS's libraries; never on a NeuronCore.
"""

from lqcd_aot.neuron.compiled import CompiledOperator
from lqcd_aot.neuron.compiler import NeuronCompiler
from lqcd_aot.neuron.device import NeuronDevice, get_device, is_neuron_available
from lqcd_aot.neuron.fusion import SpillError
from lqcd_aot.neuron.half_lattice import CompiledHop, pack_checkerboard, unpack_checkerboard
from lqcd_aot.neuron.measured import CompiledObservable
from lqcd_aot.neuron.param import NeuronCompileParam

__all__ = [
    "CompiledHop",
    "CompiledObservable",
    "CompiledOperator",
    "NeuronCompileParam",
    "NeuronCompiler",
    "NeuronDevice",
    "SpillError",
    "get_device",
    "is_neuron_available",
    "pack_checkerboard",
    "unpack_checkerboard",
]
