"""What users may give to `metabo.GP`: wrong types are refused in one line, and NumPy's whole numbers are whole numbers.

`metabo.GP` itself is called as a user calls it, in a process without the type checks of the tests.
"""

import re

import numpy as np
import pytest

from metabo.errors import ConfigError
from metabo.gp import arguments
from tests.compute.test_precision import foreign


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: arguments.count("steps", np.float64(3)), "steps is .*3.0.*; must be a whole number of at least 1"),
        (lambda: arguments.count("steps", True), "steps is True; must be a whole number of at least 1"),
        (lambda: arguments.seed("a"), "seed is 'a'; must be a whole number from 0 to"),
        (lambda: arguments.seed(1.5), "seed is 1.5; must be"),
        (lambda: arguments.seed(None), "seed is None; must be"),
        (lambda: arguments.layers("features", 32), "features is 32; give the sizes of layers, such as (32, 32)"),
        (lambda: arguments.layers("features", "32"), "features is '32'; give the sizes of layers"),
        (lambda: arguments.layers("features", (32, 0)), "features is 0; must be a whole number of at least 1"),
        (lambda: arguments.text("mean", None), "mean is None; give its name, in quotes"),
    ],
)
def test_wrong_types_are_refused_with_argument_and_remedy(call, message):
    with pytest.raises(ConfigError, match=f"^{message}" if ".*" in message else f"^{re.escape(message)}"):
        call()


def test_whole_numbers_of_numpy_are_whole_numbers():
    assert arguments.count("dim", np.int64(2)) == 2 and type(arguments.count("dim", np.int64(2))) is int
    assert arguments.seed(np.uint8(3)) == 3 and arguments.layers("features", np.array([4, 5])) == [4, 5]


@pytest.mark.parametrize(
    ("x", "several"),
    [
        ([[0.1], [0.2]], False),
        ([[[0.1], [0.2]], [[0.3]]], True),
        ([[[1.0], [2.0, 3.0]]], True),  # a slip within a task is no reason to take it for numbers
        ([np.zeros((2, 1))], True),
        ([np.zeros(2)], False),
        (np.zeros((2, 2, 1)), False),
        ([], False),
        ([[]], False),
    ],
)
def test_a_list_of_tasks_is_told_from_a_list_of_points(x, several):
    assert arguments.lists_tasks(x) is several


FAR = """
import warnings
import numpy as np
import metabo
gp, x = metabo.GP(dim=np.int64(1)), np.linspace(0, 1, 5)[:, None]
for size in (1e3, 1e5):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        gp.posterior(size + x, np.arange(5.0)).predict(size + x)
        gp.fit([size + x], [np.arange(5.0)], steps=1)
    print(size, [(one.filename, str(one.message)) for one in caught])
"""


def test_inputs_whose_distances_are_rounded_are_told_of_at_the_line_that_asked():
    near, far = foreign(FAR).splitlines()
    assert near == "1000.0 []"
    said = "('<string>', 'x has values of size 1e+05, whose distances are rounded; scale x to [0, 1]')"
    of_task = said.replace("x has", "x[0] has").replace("scale x to", "scale x[0] to")
    assert far == f"100000.0 [{said}, {said}, {of_task}]"
