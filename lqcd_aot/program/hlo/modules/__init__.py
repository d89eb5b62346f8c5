"""Torch modules in split real arithmetic, written for lowering: one per operator word and calling form.

    parts.py         i, conjugate, shifts, colour products on [2 (re,im), ...] tensors
    stencil.py       the hop on components, for the whole lattice and for slabs
    dirac.py         wilson, clover and twisted operators on components
    checkerboard.py  the hop between parities, Schur operators
    fused.py         operators over spin-colour blocks, and the builder of the blocks
    loops.py         plaquette, action, Polyakov loops, field strength
    cg.py            one iteration of conjugate gradients
    table.py         spec -> module

They share no text with lqcd_aot.dirac and lqcd_aot.observables, which judge them. No module looks at an extent, so that the
exported graph is the same for every lattice (the Polyakov loop, whose length is the lattice's, is the exception).
"""
