"""A copy of the project to follow a page in."""

from tests.workflow.conftest import copy_project

__all__ = ["copy_project"]
