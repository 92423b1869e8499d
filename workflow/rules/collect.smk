# Real trainings -> results/{scale}/collect/{benchmark}/{unit}.parquet -> one table -> an archive in the published format.
# The package ships the table of such a run, so nothing here but `archive` runs unless it is asked for.
from metabo.collect import shipped

COLLECTED = {b: registry.units(b) for b in BENCHMARKS if registry.benchmark(b).collector}


def collected_archive(benchmark):
    return f"{OUT}/archives/{registry.benchmark(benchmark).archive}"


def source_of(benchmark):
    """Return whether the table of a benchmark is the shipped one or one that is collected here."""
    return SETTINGS.sizes["benchmarks"][benchmark]["source"]


def archive_source(benchmark):
    """Return the shipped table (its checksum is compared by the job that reads it), or the one collected here."""
    if source_of(benchmark) == "collected":
        return f"{OUT}/collect/{benchmark}.parquet"
    table = shipped.table_path(benchmark)
    return os.path.relpath(table) if table.is_file() else lambda wildcards: or_stop(shipped.check, benchmark)


rule collect:
    input:
        code=lambda w: code("collect", {"benchmark": w.benchmark}),
    output:
        table=OUT + "/collect/{benchmark}/{unit}.parquet",
        meta=OUT + "/collect/{benchmark}/{unit}.json",
    log:
        OUT + "/logs/collect/{benchmark}/{unit}.log",
    benchmark:
        OUT + "/benchmarks/collect/{benchmark}/{unit}.tsv"
    wildcard_constraints:
        benchmark="|".join(COLLECTED),
        unit="|".join(unit for units in COLLECTED.values() for unit in units),
    threads: 1
    resources:
        gpu=0,
        mem_mb=3000,
    params:
        code=planned,
        spec=lambda w: written(settings.collect_spec(SETTINGS, w.benchmark, w.unit)),
        # not an output: Snakemake would delete it when the job is killed
        journal=lambda w: f".cache/collect/{SETTINGS.scale}/{w.benchmark}/{w.unit}.jsonl",
    message:
        "collect {wildcards.benchmark}: {wildcards.unit} (progress: {log})"
    shell:
        "python -m metabo.stages.collect --spec {params.spec:q} --code {params.code}"
        " --journal {params.journal} --out {output.table}"
        " --threads {threads} > {log} 2>&1"


for benchmark in COLLECTED:

    rule:
        name:
            f"collect_{benchmark}"
        input:
            tables=[f"{OUT}/collect/{benchmark}/{unit}.parquet" for unit in COLLECTED[benchmark]],
            code=lambda w, benchmark=benchmark: code("pack", {"benchmark": benchmark}),
        output:
            table=f"{OUT}/collect/{benchmark}.parquet",
            meta=f"{OUT}/collect/{benchmark}.json",
        log:
            f"{OUT}/logs/collect/{benchmark}.log",
        threads: 1
        resources:
            gpu=0,
            mem_mb=3000,
        params:
            code=planned,
            spec=constant(written(settings.pack_spec(SETTINGS, benchmark))),
        message:
            f"join the units of {benchmark} and compare them with the shipped table: {OUT}/collect/{benchmark}.json"
        shell:
            "python -m metabo.stages.pack --spec {params.spec:q} --code {params.code}"
            " --in-tables {input.tables} --out {output.table}"
            " > {log} 2>&1"

    rule:
        name:
            f"archive_{benchmark}"
        input:
            table=archive_source(benchmark),
            code=lambda w, benchmark=benchmark: code("archive", {"benchmark": benchmark}),
        output:
            archive=collected_archive(benchmark),
            meta=f"{OUT}/archives/{benchmark}.json",
        log:
            f"{OUT}/logs/archives/{benchmark}.log",
        threads: 1
        resources:
            gpu=0,
            mem_mb=3000,
        params:
            code=planned,
            spec=constant(written(specs.ArchiveSpec(benchmark, source_of(benchmark)))),
        message:
            f"write {registry.benchmark(benchmark).archive} from the {source_of(benchmark)} table"
        shell:
            "python -m metabo.stages.archive --spec {params.spec:q} --code {params.code}"
            " --in-table {input.table} --out {output.archive}"
            " --sidecar {output.meta} > {log} 2>&1"
