"""Lattice geometry and lattice fields as torch tensors.

lattice.py       LatticeGeometry: extents, colours, array shapes
gauge_field.py   GaugeField: links [T,Z,Y,X,4,Nc,Nc], made, loaded, saved, transformed
spinor_field.py  ColorSpinorField: quark spinors [T,Z,Y,X,4,Nc]
su_n.py          the group SU(N): Haar samples, projection, deviation from the group
shift.py         moving a field by one site
checks.py        the questions asked of every tensor before physics starts
heatbath.py      thermalised pure-gauge fields (loaded when asked for)
"""

from lqcd_aot.core.gauge_field import GaugeField
from lqcd_aot.core.lattice import LatticeGeometry
from lqcd_aot.core.spinor_field import ColorSpinorField

__all__ = ["ColorSpinorField", "GaugeField", "LatticeGeometry"]
