# archives, packages, generators -> results/{scale}/data/{benchmark}.npz
import shlex

from metabo.data import download
from metabo.plan import aliases

DATASETS = or_stop(download.archives, Path("workflow/datasets.csv"), Path("workflow/schemas/datasets.yaml"))
or_stop(
    download.require_rows,
    Path("workflow/datasets.csv"),
    DATASETS,
    {benchmark: registry.benchmark(benchmark).dataset for benchmark in BENCHMARKS},
)


def dataset(benchmark):
    """Return the row of workflow/datasets.csv that a benchmark is read from, or None if it needs no archive."""
    return DATASETS.get(registry.benchmark(benchmark).dataset)


def archive_file(benchmark):
    row = dataset(benchmark)
    return f".cache/archives/{row['file']}" if row else []


def collected_file(benchmark):
    """Return the archive of a benchmark that is read from a collection, its own or that of another one."""
    source = registry.benchmark(benchmark).archive_of or benchmark
    return collected_archive(source) if source in COLLECTED else []


def member_files(benchmark):
    """Return the benchmarks that a benchmark is made of."""
    return [f"{OUT}/data/{member}.npz" for member in registry.benchmark(benchmark).members]


def named_files(benchmark):
    """Return the files that the settings of a benchmark name: a user's own."""
    return or_stop(settings.named_files, SETTINGS, benchmark)


for row in DATASETS.values():

    rule:
        name:
            f"download_{row['name']}"
        input:
            datasets=ancient("workflow/datasets.csv"),
        output:
            # update: what is on disk stays, so an interrupted download resumes and a right archive is only checked
            archive=update(f".cache/archives/{row['file']}"),
            # named after the file, as `checksums.sidecar_of` looks for it
            meta=f".cache/archives/{row['file'].partition('.')[0]}.json",
        log:
            f".cache/logs/{row['name']}.log",
        # a cluster's nodes may have no network
        localrule: True
        threads: 1
        resources:
            gpu=0,
            mem_mb=500,
            runtime=quick,
        params:
            **made_with(constant(settings.download_spec(SETTINGS, row))),
        message:
            f"download {row['file']}"
        shell:
            "python -m metabo.stages.download --spec {params.spec:q} --in-datasets {input.datasets}"
            " --out {output.archive} --sidecar {output.meta} > {log} 2>&1"


rule load:
    input:
        # ancient: the pinned checksum says whether a downloaded archive is new, not its clock
        archive=ancient(lambda w: archive_file(w.benchmark)),
        collected=lambda w: collected_file(w.benchmark),
        members=lambda w: member_files(w.benchmark),
        files=lambda w: [aliases.escaped(path) for path in named_files(w.benchmark)],
        code=lambda w: code("data", {"benchmark": w.benchmark}),
    output:
        data=OUT + "/data/{benchmark}.npz",
        meta=OUT + "/data/{benchmark}.json",
    log:
        OUT + "/logs/data/{benchmark}.log",
    benchmark:
        OUT + "/benchmarks/data/{benchmark}.tsv"
    group:
        together("load", shared_load)
    threads: 1
    resources:
        gpu=0,
        mem_mb=memory,
        runtime=load_minutes,
    params:
        **made_with(lambda w: settings.data_spec(SETTINGS, w.benchmark)),
        code=planned,
        checksum=lambda w: (dataset(w.benchmark) or {"checksum": "none"})["checksum"],
        archive=lambda w, input: f"--in-archive {path}" if (path := input.archive or input.collected) else "",
        members=lambda w, input: f"--in-members {input.members}" if input.members else "",
        files=lambda w: f"--in-files {shlex.join(paths)}" if (paths := named_files(w.benchmark)) else "",
    message:
        "load {wildcards.benchmark}"
    shell:
        "python -m metabo.stages.data --spec {params.spec:q} --code {params.code}"
        " {params.archive} {params.members} {params.files} --out {output.data}"
        " --threads {threads} > {log} 2>&1"
