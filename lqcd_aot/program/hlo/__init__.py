"""HLO programs: torch module -> torch.export graph -> canonical HloModuleProto, for targets without complex numbers.

    schema.py     the subset of the protocol buffers
    graph.py      instructions as values, shape rules
    emit.py       torch.export graph -> instructions
    canonical.py  instructions -> bytes
    modules/      the torch modules that are lowered
    lower.py      spec -> bytes
    variant.py    spec and target -> HloProgram; refusals
    cache.py      lowered programs kept on disk
    model.py      HloProgram
    read.py       bytes -> instructions, standard library only
    validate.py   what a program must hold to; allowed instructions
    estimate.py   memory, matrix-engine instructions, time
    estimates.py  estimates kept on disk
    choose.py     fused = "auto", shards = "auto"

Importing this package loads neither torch nor protobuf.
"""
