"""The build: decide, compile, judge, publish, pack.

    plan.py           per variant reuse, build or blocked, with the reason
    simulate.py       Neuron targets built by the double of their compiler
    device_estimate.py  what a variant will take of a NeuronCore, guessed, for plan
    explain.py        why an artifact has to be built: every differing component, old and new
    inexpressible.py  what no program can express, as the [[exclude]] rules to add
    execute.py        builds what the plan says, in parallel
    job.py            one variant: lease, compile, check, publish; what is remembered of a failure
    pool.py           threads bounded by number and by memory
    events.py         progress: what happened, how many are left, how long it will take
    witness.py        the judge: expected answers from the torch modules, shared by all variants that ask the same
    check.py          a fresh artifact against its witness
    replay_child.py   the process in which fresh machine code runs for the first time
    event_log.py      what builds did, kept in the store
    rebuild.py        compile again and compare
    pack.py           the artifacts of a plan as one bundle file

Importing any of them loads neither torch nor a compiler.
"""
