"""An executor of Snakemake that stands for a cluster: it writes down what is submitted, and touches what would be made.

Snakemake finds it because its folder is on PYTHONPATH: `snakemake --executor counted`. With METABO_COUNTED=plan in the
environment it writes down what the whole plan would submit, and stops.
"""

import json
import os
from collections.abc import AsyncGenerator, Iterable
from pathlib import Path

from snakemake_interface_common.exceptions import WorkflowError
from snakemake_interface_executor_plugins.executors.base import SubmittedJobInfo
from snakemake_interface_executor_plugins.executors.remote import RemoteExecutor
from snakemake_interface_executor_plugins.jobs import JobExecutorInterface
from snakemake_interface_executor_plugins.settings import CommonSettings

common_settings = CommonSettings(
    non_local_exec=True, implies_no_shared_fs=False, job_deploy_sources=False, pass_default_storage_provider_args=True,
    pass_default_resources_args=True, pass_envvar_declarations_to_cmd=False, auto_deploy_default_storage_provider=False,
    init_seconds_before_status_checks=0,
)  # fmt: skip
ASKED = ("runtime", "mem_mb", "gpu", "_cores")
RECORD = Path("submissions.jsonl")
"""A line for each submission: what it asks for, and its jobs with what each of them needs."""


class Executor(RemoteExecutor):
    """Finishes every submission at once."""

    def __post_init__(self) -> None:
        self.next_seconds_between_status_checks = 0.2
        if os.environ.get("METABO_COUNTED") == "plan":
            dag = self.workflow.dag
            ahead = [job for job in dag.needrun_jobs() if not job.is_norun and not job.is_local]
            for one in {dag.get_job_group(job) or job for job in ahead}:
                _record(one)
            raise WorkflowError("the plan is written down")

    def run_job(self, job: JobExecutorInterface) -> None:
        """Write down a submission and touch what it would make."""
        _record(job)
        for member in _members(job):
            for path in map(Path, member.products(include_logfiles=False)):
                path.parent.mkdir(parents=True, exist_ok=True)
                path.touch()
        self.report_job_submission(SubmittedJobInfo(job, external_jobid=str(os.getpid())))

    async def check_active_jobs(self, active_jobs: list[SubmittedJobInfo]) -> AsyncGenerator[SubmittedJobInfo, None]:
        """Report that all have ended well."""
        for info in active_jobs:
            self.report_job_success(info)
        for info in ():
            yield info  # the interface wants a generator of those that still run

    def cancel_jobs(self, active_jobs: list[SubmittedJobInfo]) -> None:
        """There is nothing to cancel."""


def _members(job: JobExecutorInterface) -> Iterable[JobExecutorInterface]:
    return job if job.is_group() else [job]


def _record(job: JobExecutorInterface) -> None:
    jobs = [_needs(member) | {"rule": member.rule.name, "output": list(member.output)} for member in _members(job)]
    with RECORD.open("a") as stream:
        stream.write(json.dumps(_needs(job) | {"jobs": jobs}) + "\n")


def _needs(job: JobExecutorInterface) -> dict[str, int]:
    return {name: job.resources.get(name, 0) for name in ASKED}
