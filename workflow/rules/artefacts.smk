# Trajectories, evaluations, online tuning -> tables and figures. One named rule per artefact of the catalogue and
# benchmark.
import re


def artefact_files(artefact):
    names = ("notebook.ipynb", "figure.pdf", "figure.png", "data.csv", "provenance.json")
    return [f"{OUT}/{artefact.place}/{name}" for name in names]


def input_files(artefact):
    """Return the tables that the notebook reads, by the parameter that names them."""
    return {kind: table_files(artefact, kind) for kind in artefact.files}


def data_file(artefact):
    return [f"{OUT}/data/{artefact.benchmark}.npz"] if artefact.benchmark else []


def artefact_code(artefact):
    """Return the file that stands for the notebook's package modules."""
    return or_stop(lambda: code_of("metabo.stages.notebook", *template_roots(artefact.template)))


@cache  # several artefacts share a template
def template_roots(template):
    return codegraph.notebook_roots(template)


def artefact_methods(artefact):
    """How its methods are registered (label, colour, ...): a change re-draws the artefacts that show the method."""
    methods = {run.method for run in (*artefact.trajectories, *artefact.evaluations, *artefact.online)}
    return {method: plain(registry.method(method)) for method in sorted(methods)}


def reported(artefact):
    """Return its files by the names of the rule's outputs, the figure marked for `snakemake --report`."""
    files = dict(zip(("notebook", "pdf", "png", "csv", "meta"), artefact_files(artefact)))
    labels = {"artefact": artefact.name, "title": artefact.entry.title}
    place = {"category": artefact.entry.paper, "subcategory": artefact.benchmark or "no benchmark"}
    return files | {"png": report(files["png"], caption="../report/artefact.rst", labels=labels, **place)}


def marked_up(text):
    """Return what gives `text` as reStructuredText to `snakemake --report`.

    A function of the output: Snakemake does not compare such parameters, and the text is in the spec already.
    """
    return lambda wildcards, output: re.sub(r"([\\\\*_`|])", r"\\\1", text)


def executed_copy(artefact):
    """Return what gives the path of the copy that stays when a cell fails.

    No log of the rule: Snakemake prints those of a failed job, and this one is hundreds of lines of JSON.
    """
    return lambda wildcards, output: f"{OUT}/logs/{artefact.place}.ipynb"


def made_by(artefact):
    """Return what gives the arguments of the Snakemake call that makes it, for the text of its notebook.

    A function of the output: Snakemake does not compare such parameters, and another file that configures the same is no
    reason to make it again.
    """
    return lambda wildcards, output: " ".join([artefact.name, *OVERLAYS])


def artefact_memory(artefact):
    """Return MiB: an artefact without tables describes the benchmark itself and reads all of it."""
    reads_all = artefact.benchmark and not artefact.inputs.kinds
    return max(4000, registry.benchmark(artefact.benchmark).memory_mb) if reads_all else 3000


for artefact in ARTEFACTS:

    rule:
        name:
            artefact.name
        input:
            template=artefact.template,
            tables=[path for paths in input_files(artefact).values() for path in paths],
            data=data_file(artefact),
            code=lambda w, artefact=artefact: artefact_code(artefact),
        output:
            **reported(artefact),
        log:
            f"{OUT}/logs/{artefact.place}.log",
        benchmark:
            f"{OUT}/benchmarks/{artefact.place}.tsv"
        group:
            together("notebook", shared_notebook(artefact))
        threads: 1
        resources:
            gpu=0,
            mem_mb=artefact_memory(artefact),
            runtime=quick,
        params:
            code=planned,
            spec=constant(canonical(notebook_parameters(artefact, OUT))),
            methods=constant(canonical(artefact_methods(artefact))),
            data=lambda w, input: f"--in-data {input.data}" if input.data else "",
            scratch=executed_copy(artefact),
            target=made_by(artefact),
            title=marked_up(artefact.entry.title),
            caption=marked_up(artefact.entry.caption),
        message:
            f"make {artefact.name}: {OUT}/{artefact.place}"
        shell:
            "python -m metabo.stages.notebook --spec {params.spec:q} --code {params.code}"
            " --in-template {input.template}"
            " --in-tables {input.tables} {params.data} --out {output.notebook} --sidecar {output.meta}"
            " --scratch {params.scratch} --threads {threads} --target {params.target:q} > {log} 2>&1"
