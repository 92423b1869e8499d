"""What a job has cost: the processors' time, or the wall time of its cores where the record has no other."""

import pytest

from metabo.records.spent import core_seconds

CPU, GPU = {"platform": "cpu", "kind": "cpu", "count": 1}, {"platform": "gpu", "kind": "H100", "count": 1}


@pytest.mark.parametrize(
    ("record", "seconds"),
    [
        ({"cpu_s": 7.5, "wall_s": 30.0, "threads": 2, "device": CPU}, 7.5),
        ({"cpu_s": 7.5, "wall_s": 30.0, "threads": 2, "device": None}, 7.5),
        ({"cpu_s": 7.5, "wall_s": 30.0, "threads": 2, "device": GPU}, 60.0),
        ({"wall_s": 30.0, "threads": 2, "device": CPU}, 60.0),
        ({"wall_s": 30.0}, 30.0),
        ({}, 0.0),
    ],
    ids=["cores", "no JAX", "accelerator", "older", "older still", "nothing"],
)
def test_a_job_counts_with_the_time_that_cores_worked_for_it(record, seconds):
    assert core_seconds(record) == seconds
