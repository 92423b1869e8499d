"""Find the parts of a method: the `Method` that its registration names, and its possible faults."""

import importlib
import re
from dataclasses import fields
from functools import cache
from pathlib import Path
from types import ModuleType

from metabo.errors import ConfigError, nearest
from metabo.plan.method import Method
from metabo.plan.typed import read

PACKAGE_ROOT = Path(__file__).parents[1]


def path_of(module: str) -> Path:
    """Return the file of a module by its name below `metabo`. It need not exist."""
    return PACKAGE_ROOT.joinpath(*module.split(".")).with_suffix(".py")


@cache
def load(dotted: str, table: str) -> Method:
    """Return the `Method` with a dotted name (module and constant) below `metabo`, which the file `table` names.

    Raises ConfigError, which names file, field and remedy, if there is none or it has faults."""
    module, _, name = dotted.rpartition(".")
    file = path_of(module)
    loaded = _imported(module, file, table)
    made = {key: value for key, value in vars(loaded).items() if isinstance(value, Method)}
    if name not in made:
        there = ", ".join(made) or "none"
        raise ConfigError(
            f"{file}: has no `{name} = Method(...)`, which {table} names.{nearest(name, made)} It has: {there}"
        )
    parts = read(Method, vars(made[name]), f"{file}: {name}")
    for field, named in (("pretrain", parts.pretrain), ("policy", parts.policy), ("online", parts.online)):
        if named and not path_of(named).is_file():
            raise ConfigError(f"{file}: {name}.{field} is '{named}', but there is no {path_of(named)}; name a module")
    return parts


def _imported(module: str, file: Path, table: str) -> ModuleType:
    if not file.is_file():
        families = [path.parent.name for path in (PACKAGE_ROOT / "methods").glob("*/method.py")]
        there = sorted(f"methods.{family}.method" for family in families)
        listed = ", ".join(there)
        raise ConfigError(
            f"{table}: there is no {file}, where a Method should be.{nearest(module, there)} There are: {listed}"
        )
    try:
        return importlib.import_module(f"metabo.{module}")
    except TypeError as error:  # from the call of Method
        known = [field.name for field in fields(Method)]
        wrong = re.search(r"unexpected keyword argument '(\w+)'", str(error))
        match = nearest(wrong[1], known) if wrong else ""
        raise ConfigError(f"{file}: {error}.{match} Fields of a Method: {', '.join(known)}") from error
    except (ImportError, SyntaxError, NameError) as error:
        raise ConfigError(f"{file}: cannot be imported ({error}); mend it") from error
