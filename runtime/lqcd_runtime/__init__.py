"""Loads and runs ahead-of-time compiled lattice QCD artifacts."""
