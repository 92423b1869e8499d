"""Settings of methods as records: what the registry holds is read; another type of value is refused by its key."""

import pytest

from metabo.errors import ConfigError
from metabo.gp.settings import GPSettings, InitialValues, read_gp
from metabo.methods.embedding.settings import EnsembleModel
from metabo.methods.hierarchical.settings import read_model
from metabo.methods.pretrained.settings import NLLSettings, read_objective
from metabo.plan.typed import read
from tests import tiny


def test_settings_are_those_of_the_spec():
    spec = tiny.spec("h_nll")
    assert read_gp(spec["model"]) == GPSettings("linear_mlp", "matern52", (4, 3))
    rate = spec["pretrain"]["learning_rate"]
    assert read_objective("h_nll", spec["pretrain"]) == NLLSettings("nll", rate, steps=12, batch=5)
    hand = read_model(tiny.spec("hgp_hand")["model"])
    assert hand.gp == GPSettings("constant", "matern52", (), InitialValues(constant=1.0, lengthscale=1.0))
    assert hand.hyperparameters.noise == (1.0, 100.0)


def test_a_value_of_another_type_is_refused_by_its_key():
    given = tiny.spec("h_nll")["pretrain"]
    with pytest.raises(ConfigError, match=r"config key 'methods\.h_nll\.pretrain\.steps' is .*, must be an integer"):
        read_objective("h_nll", given | {"steps": 2.5})
    with pytest.raises(ConfigError, match="unknown objective 'nnl'"):
        read_objective("h_nll", given | {"objective": "nnl"})
    with pytest.raises(ConfigError, match="model key 'features' is the number 3, must be a list"):
        read_gp({"mean": "zero", "kernel": "matern52", "features": 3})
    with pytest.raises(ConfigError, match="model key 'unshared' is missing"):
        read(EnsembleModel, {"members": 4, "embedding": 5, "shared": [10]}, "model")
