"""Names of tasks for people: the parts of a PD1 identifier and a short label (hyperbo Tables 3 and 5).

A PD1 identifier (`study_group`) is "name,data set,model family,model,batch size". The embedded collection uses the same
format. Other benchmarks' names are their own labels.
"""

from typing import NamedTuple

from metabo.papers.engine import printed

MODELS = {
    "wrn": ("WRN", "Wide ResNet"),
    "resnet50": ("ResNet50", "ResNet50"),
    "max_pool_relu": ("CNNPoolReLU", "Max pool CNN ReLU"),
    "max_pool_tanh": ("CNNPoolTanh", "Max pool CNN tanh"),
    "simple_cnn": ("CNNReLU", "Simple CNN"),
    "transformer": ("Transformer", "Transformer"),
    "xformer": ("XFormer", "xformer"),
    "mlp": ("MLP", "MLP"),
}
"""Per model id: how Table 5 abbreviates it, how Table 3 writes it out."""


class Parts(NamedTuple):
    """Data set, model and batch size of a task, as its identifier has them; "" where the name does not say."""

    dataset: str
    model: str
    batch: str


def parts(task: str) -> Parts:
    """Split a PD1 identifier; any other name has no parts."""
    fields = [field.strip() for field in task.split(",")]
    return Parts(fields[1], fields[-2], fields[-1]) if len(fields) >= 4 else Parts("", "", "")


def label(task: str) -> str:
    """Return the paper's name of a PD1 task, the same style for another PD1 identifier ("digits CNNPoolReLU 32"), or
    the task's own name."""
    dataset, model, batch = parts(task)
    name = printed.short_name(task)
    if name != task or not dataset:
        return name
    return f"{dataset} {MODELS.get(model, (model,))[0]} {batch}"


def model(task: str) -> str:
    """Return a task's model as hyperbo Table 3 writes it (the identifier's word if the table has no such model)."""
    name = parts(task).model
    return MODELS[name][1] if name in MODELS else name
