"""The version the double of neuronx-cc announces: of the release it imitates, marked in its git part.

A new version disowns every NEFF-SIM built before: raise it when the double's output changes.
"""

BANNER_VERSION = "2.27.5334.0+51e0001"
