"""What the verbs observe, propagator and pion share on the build side.

ensure.py   the artifacts a measurement needs: from a bundle, from the store, or built now (said in one line)
hdf5.py     propagators and correlators as HDF5 files with provenance, written whole or not at all
plot.py     the pion correlator with its effective mass as PNG
"""
