"""Contexts of lengthscales: the paper's example, one-hot columns, levels."""

import numpy as np
import pytest

from metabo.errors import DataError
from metabo.methods.hierarchical.contexts import of_columns, of_space
from metabo.tasks.spaces import Parameter, SearchSpace


def test_the_papers_example():
    # mphd §2.1: discrete, continuous, discrete
    space = SearchSpace(
        "figure 3",
        (
            Parameter("a", "ordinal", levels=(0, 1)),
            Parameter("b", "log", 1e-3, 1.0),
            Parameter("c", "ordinal", levels=("no", "yes")),
        ),
    )
    assert of_space(space).tolist() == [[1, 0, 2, 1], [0, 1, 2, 1], [1, 0, 2, 1]]


def test_a_synthetic_domain_is_continuous_throughout():
    space = SearchSpace("d", tuple(Parameter(f"x{i}", "linear", 0.0, 1.0) for i in range(5)))
    assert of_space(space).tolist() == [[0, 1, 0, 5]] * 5


def test_one_row_for_each_encoded_column():
    space = SearchSpace(
        "mixed",
        (
            Parameter("kind", "categorical", levels=("u", "v", "w")),
            Parameter("depth", "ordinal", levels=(1, 2, 3)),
            Parameter("rate", "log", 1e-3, 1.0),
        ),
    )
    assert of_space(space).tolist() == [[1, 0, 3, 2]] * 3 + [[0, 1, 3, 2]] * 2
    # "discrete" are the columns that take two values: what the authors' code finds in the encoded data
    columns = {"kind": np.array(list("uvwuvw")), "depth": np.array([1, 2, 3] * 2), "rate": np.geomspace(1e-3, 1.0, 6)}
    encoded = space.encode(columns)
    found = np.array([len(np.unique(column)) == 2 for column in encoded.T])
    np.testing.assert_array_equal(of_space(space), of_columns(found))


@pytest.mark.parametrize("levels", [2, 3, 10])
def test_an_ordinal_parameter_is_discrete_with_two_levels_only(levels):
    space = SearchSpace("o", (Parameter("p", "ordinal", levels=tuple(range(levels))),))
    assert of_space(space).tolist() == [[1, 0, 1, 0]] if levels == 2 else [[0, 1, 0, 1]]


def test_a_space_without_a_context_is_named():
    with pytest.raises(DataError, match=r"space 'bare': no parameters, so its inputs have no context"):
        of_space(SearchSpace("bare", ()))
