"""The judge answers every observable and gauge map of the runtime's table, in its order, and refuses other inputs."""

from __future__ import annotations

import pytest
import torch

from lqcd_aot.core import GaugeField, LatticeGeometry
from lqcd_aot.observables import plaquette, stout_smear, topological_charge, wilson_action, wilson_flow_step
from lqcd_aot.observables.judge import gauge_map, observe
from lqcd_runtime.errors import UsageError
from lqcd_runtime.signature import OPERATORS

FIELD = GaugeField.random(LatticeGeometry(T=4, Z=2, Y=3, X=2), seed=11, dtype=torch.complex128)
INPUTS = {"beta": 6.0, "epsilon": 0.02, "rho": 0.1}


@pytest.mark.parametrize("operator", [name for name, o in OPERATORS.items() if o["kind"] == "observable"])
def test_every_observable_is_answered(operator):
    inputs = {name: INPUTS[name] for name in OPERATORS[operator]["inputs"]}
    results = observe(operator, FIELD, **inputs)
    assert len(results) == len(OPERATORS[operator]["results"])
    assert all(isinstance(value, float) for value in results)
    assert observe(operator, FIELD.tensor.numpy(), **inputs) == results
    with pytest.raises(UsageError, match="other inputs"):
        observe(operator, FIELD, **inputs, colour=1.0)


@pytest.mark.parametrize("operator", [name for name, o in OPERATORS.items() if o["kind"] == "gauge_map"])
def test_every_gauge_map_is_answered(operator):
    inputs = {name: INPUTS[name] for name in OPERATORS[operator]["inputs"]}
    links = gauge_map(operator, FIELD.to(dtype=torch.complex64), **inputs)
    assert links.dtype == torch.complex128
    assert links.shape == FIELD.tensor.shape
    with pytest.raises(UsageError, match="other inputs"):
        gauge_map(operator, FIELD)


def test_answers_are_those_of_the_functions():
    assert sum(observe("plaquette", FIELD)) / 6 == pytest.approx(plaquette(FIELD), rel=1e-14)
    assert observe("wilson_action", FIELD, beta=5.5) == [wilson_action(FIELD, 5.5)]
    assert observe("topological_charge", FIELD) == [topological_charge(FIELD)]
    assert torch.equal(gauge_map("stout_smear", FIELD, rho=0.1), stout_smear(FIELD.tensor, 0.1))
    assert torch.equal(gauge_map("wilson_flow_step", FIELD, epsilon=0.02), wilson_flow_step(FIELD.tensor, 0.02))


def test_other_kinds_are_refused():
    with pytest.raises(UsageError, match="not of kind observable"):
        observe("wilson", FIELD, mass=0.1)
    with pytest.raises(UsageError, match="not of kind gauge_map"):
        gauge_map("plaquette", FIELD)
