# Trajectories and evaluations -> tables and figures. One named rule per artefact of the catalogue and benchmark.


def place(artefact):
    return f"{artefact.entry['paper']}/{artefact.benchmark}/{artefact.id}"


def artefact_files(artefact):
    names = ("notebook.ipynb", "figure.pdf", "figure.png", "data.csv", "provenance.json")
    return [f"{OUT}/{place(artefact)}/{name}" for name in names]


def notebook_parameters(artefact):
    return {
        "artefact": artefact.id,
        "title": artefact.entry["title"],
        "caption": artefact.entry["caption"],
        "benchmark": artefact.benchmark,
        "split": artefact.split,
        "trajectories": trajectory_files(artefact),
        "evaluations": evaluation_files(artefact),
        "data": f"{OUT}/data/{artefact.benchmark}.npz",
        "out": f"{OUT}/{place(artefact)}",
        **artefact.entry.get("parameters", {}),
    }


def artefact_code(artefact):
    """The notebook's package modules."""
    roots = ["metabo.stages.notebook", *codegraph.notebook_roots(artefact.template)]
    return relative(codegraph.inputs(roots))


def artefact_methods(artefact):
    """How its methods are registered (label, colour, ...): a change re-draws the artefacts that show the method."""
    methods = {method for method, _ in artefact.trajectories} | set(artefact.evaluations)
    return {method: registry.method(method) for method in sorted(methods)}


for artefact in ARTEFACTS:

    rule:
        name:
            artefact.name
        input:
            template=artefact.template,
            tables=trajectory_files(artefact) + evaluation_files(artefact),
            data=f"{OUT}/data/{artefact.benchmark}.npz",
            code=artefact_code(artefact),
        output:
            **dict(zip(("notebook", "pdf", "png", "csv", "meta"), artefact_files(artefact))),
        log:
            text=f"{OUT}/logs/{place(artefact)}.log",
            notebook=f"{OUT}/logs/{place(artefact)}.ipynb",
        benchmark:
            f"{OUT}/benchmarks/{place(artefact)}.tsv"
        threads: 1
        resources:
            gpu=0,
            mem_mb=3000,
        params:
            spec=constant(canonical(notebook_parameters(artefact))),
            methods=constant(canonical(artefact_methods(artefact))),
        message:
            f"make {artefact.name}: {OUT}/{place(artefact)}"
        shell:
            "python -m metabo.stages.notebook --spec {params.spec:q} --in-template {input.template}"
            " --in-tables {input.tables} --in-data {input.data} --out {output.notebook} --sidecar {output.meta}"
            " --scratch {log.notebook} --threads {threads} > {log.text} 2>&1"
