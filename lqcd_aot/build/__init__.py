"""The build: decide, compile, judge, publish, pack.

    plan.py           per variant reuse, build or blocked, with the reason
    explain.py        why an artifact has to be built: every differing component, old and new
    inexpressible.py  what no program can express, as the [[exclude]] rules to add
"""
