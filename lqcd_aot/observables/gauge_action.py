"""Gauge actions: Wilson and Luescher-Weisz (Symanzik) with given coefficients.

Owns: the action's formulas. S = beta sum over loops of (1 - Re tr / Nc), so a cold field has S = 0.
"""

from __future__ import annotations

from typing import Any

from lqcd_aot.observables.links import links_of
from lqcd_aot.observables.loops import plaquette_tensor, rectangle_tensor

TREE_LEVEL_RECTANGLE = -1.0 / 12.0
IWASAKI_RECTANGLE = -0.331
DBW2_RECTANGLE = -1.4088


def wilson_action(field: Any, beta: float) -> float:
    """S = beta sum_{x, mu<nu} (1 - Re tr P_{mu nu}(x) / Nc), beta = 2 Nc / g^2."""
    links = links_of(field)
    return float(beta) * float((1.0 - plaquette_tensor(links).double() / links.shape[-1]).sum())


def symanzik_action(field: Any, beta: float, rectangle_coefficient: float = TREE_LEVEL_RECTANGLE) -> float:
    """S = beta [ c0 sum_P (1 - Re tr P / Nc) + c1 sum_R (1 - Re tr R / Nc) ], c0 = 1 - 8 c1.

    P: the 6 plaquettes a site, R: the 12 rectangles of 1x2 a site. c1 = rectangle_coefficient: -1/12 tree-level Symanzik,
    -0.331 Iwasaki, -1.4088 DBW2, 0 the Wilson action. Source: M. Luescher, P. Weisz, Commun. Math. Phys. 97 (1985) 59.
    """
    links = links_of(field)
    nc = links.shape[-1]
    c1 = float(rectangle_coefficient)
    plaquettes = float((1.0 - plaquette_tensor(links).double() / nc).sum())
    rectangles = float((1.0 - rectangle_tensor(links).double() / nc).sum())
    return float(beta) * ((1.0 - 8.0 * c1) * plaquettes + c1 * rectangles)
