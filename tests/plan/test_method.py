"""What methods are made of: found without JAX, told with file, field and remedy where it is wrong, and no code of a job
that does not run it."""

import subprocess
import sys
from pathlib import Path

import pytest

from metabo.errors import ConfigError
from metabo.plan import codegraph, parts, registry

ROOT = Path(__file__).parents[2]
ALL = """
import sys
from metabo.plan import catalogue, codegraph, config, registry
for name in registry.methods():
    registry.made_of(name)
given = config.load()
catalogue.load()
config.pretrain_spec(given, "tables", "held_out", "h_nll")
codegraph.stage_roots("bo", {"method": "mphd"})
loaded = sorted({name.split(".")[0] for name in sys.modules} & {"jax", "jaxlib", "equinox", "optax"})
print(loaded)
"""


def test_the_plan_imports_no_jax():
    done = subprocess.run([sys.executable, "-c", ALL], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[]\n"


@pytest.fixture
def family(tmp_path, monkeypatch):
    """Return a function that registers a method whose Method is in a module with this text."""
    package = tmp_path / "metabo" / "methods" / "new"
    package.mkdir(parents=True)
    monkeypatch.setattr(parts, "PACKAGE_ROOT", tmp_path / "metabo")
    (package / "train.py").touch()
    import metabo.methods

    monkeypatch.setattr(metabo.methods, "__path__", [*metabo.methods.__path__, str(package.parent)])

    def load(text: str, name: str = "methods.new.method.METHOD"):
        (package / "method.py").write_text(f"from metabo.plan.method import Method\n{text}")
        for module in ("metabo.methods.new", "metabo.methods.new.method"):
            sys.modules.pop(module, None)
        parts.load.cache_clear()
        return parts.load(name, "methods.yaml")

    yield load
    parts.load.cache_clear()
    for module in ("metabo.methods.new", "metabo.methods.new.method"):
        sys.modules.pop(module, None)


def test_a_method_is_read_with_its_defaults(family):
    made = family('METHOD = Method(pretrain="methods.new.train")')
    assert (made.pretrain, made.policy, made.online, made.pads_inputs) == ("methods.new.train", None, None, False)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"methods/new/method.py: has no `METHOD = Method\(...\)`, which methods.yaml names. It has: none"),
        ('METHODS = Method("methods.new.train")', r"names. Did you mean 'METHODS'\? It has: METHODS"),
        (
            'METHOD = Method("methods.new.train", polcy="x")',
            r"method.py: .*'polcy'. Did you mean 'policy'\? Fields of a",
        ),
        ('METHOD = Method(policy="x")', r"method.py: .*'pretrain'. Fields of a Method: pretrain, policy, online"),
        (
            'METHOD = Method("methods.new.train", policy=3)',
            r"METHOD key 'policy' is the number 3, must be text or null",
        ),
        ('METHOD = Method("methods.new.trian")', r"METHOD.pretrain is 'methods.new.trian', but there is no .*trian.py"),
        ("import nothing_of_this_name", r"method.py: cannot be imported \(No module named"),
        ("METHOD = Method(", r"method.py: cannot be imported \("),
    ],
)
def test_a_faulty_method_is_told(family, text, message):
    with pytest.raises(ConfigError, match=message):
        family(text)


def test_a_module_that_is_not_there_is_told(family):
    with pytest.raises(
        ConfigError, match=r"methods.yaml: there is no .*neww/method.py, .* Did you mean 'methods.new.me"
    ):
        family("", "methods.neww.method.METHOD")


def test_settings_of_a_part_that_a_method_has_not_are_told(tmp_path, monkeypatch):
    look = "label: M, colour: '#000000', marker: o, dashes: [], acquisition: learned"
    (tmp_path / "methods.yaml").write_text(f"new: {{{look}, method: methods.maf.method.METHOD, online: {{}}}}")
    monkeypatch.setattr(registry, "METHODS", tmp_path / "methods.yaml")
    monkeypatch.setattr(registry, "_methods", registry._methods.__wrapped__)
    with pytest.raises(ConfigError, match=r"'new' has settings 'online', but methods.maf.method.METHOD has no online"):
        registry.methods("online")


@pytest.mark.parametrize("name", registry.methods())
def test_an_edit_of_a_policy_or_of_the_parts_trains_no_prior_again(name):
    """Neither the module with the Method nor its policy is code of pre-training, unless one module has both."""
    made = registry.made_of(name)
    trains = {
        codegraph.module_name(path) for path in codegraph.files(codegraph.stage_roots("pretrain", {"method": name}))
    }
    assert not [module for module in trains if module.endswith(".method") and ".methods." in module]
    if made.policy != made.pretrain:
        assert f"metabo.{made.policy}" not in trains
    assert f"metabo.{made.pretrain}" in trains


def test_flags_are_what_a_stage_reads_besides_modules():
    assert codegraph.flags("bo", "rgpe") == {"pads_inputs": True, "uses_past": True}
    assert codegraph.flags("pretrain", "mphd") == {"across_spaces": True, "report": False}
    assert codegraph.flags("pretrain", "cm_wss_wss") == {"across_spaces": False, "report": True}
