# Real trainings -> results/{scale}/collect/{collection}/{unit}.parquet -> one table -> an archive in the published format.
# A collection is one version of a benchmark (`pd1_mini`, `pd1_mini_2`). The package ships the table of such a run, so
# nothing here but `archive` runs unless it is asked for.
from metabo.collect import shipped
from metabo.plan.entries import collection

COLLECTED = {b: or_stop(collectors.units, b) for b in BENCHMARKS if registry.benchmark(b).collector}
COLLECTIONS = {
    collection(b, version): (b, version) for b in COLLECTED for version in range(1, registry.benchmark(b).versions + 1)
}


def collected_archive(benchmark):
    return f"{OUT}/archives/{registry.benchmark(benchmark).archive}"


def source_of(benchmark):
    """Return whether the table of a benchmark is the shipped one or one that is collected here."""
    return SETTINGS.sizes["benchmarks"][benchmark]["source"]


def version_of(benchmark):
    """Return the version of a benchmark's collection that is used."""
    return SETTINGS.sizes["benchmarks"][benchmark]["version"]


def archive_source(benchmark):
    """Return the shipped table (its checksum is compared by the job that reads it), or the one collected here."""
    if source_of(benchmark) == "collected":
        return f"{OUT}/collect/{collection(benchmark, version_of(benchmark))}.parquet"
    table = shipped.table_path(benchmark, version_of(benchmark))
    return os.path.relpath(table) if table.is_file() else lambda wildcards: or_stop(shipped.check, benchmark, table)


def collected_unit(wildcards):
    """Return the spec of the collection of one unit."""
    benchmark, version = COLLECTIONS[wildcards.collection]
    return settings.collect_spec(SETTINGS, benchmark, wildcards.unit, version)


def collecting_rule(name):
    """Return the name of the rule that makes a collection: the newest version is that of `collect_{benchmark}`."""
    benchmark, version = COLLECTIONS[name]
    return f"collect_{benchmark}" + ("" if version == registry.benchmark(benchmark).versions else f"_{version}")


rule collect:
    input:
        code=lambda w: code("collect", {"benchmark": COLLECTIONS[w.collection][0]}),
    output:
        table=OUT + "/collect/{collection}/{unit}.parquet",
        meta=OUT + "/collect/{collection}/{unit}.json",
    log:
        OUT + "/logs/collect/{collection}/{unit}.log",
    benchmark:
        OUT + "/benchmarks/collect/{collection}/{unit}.tsv"
    wildcard_constraints:
        collection="|".join(COLLECTIONS),
        unit="|".join(unit for units in COLLECTED.values() for unit in units),
    threads: 1
    resources:
        gpu=0,
        mem_mb=3000,
        runtime=long,
    params:
        **made_with(collected_unit),
        # not an output: Snakemake would delete it when the job is killed
        code=planned,
        journal=lambda w: f".cache/collect/{SETTINGS.scale}/{w.collection}/{w.unit}.jsonl",
    message:
        "collect {wildcards.collection}: {wildcards.unit} (progress: {log})"
    shell:
        "python -m metabo.stages.collect --spec {params.spec:q} --code {params.code}"
        " --journal {params.journal} --out {output.table}"
        " --threads {threads} > {log} 2>&1"


for one, (benchmark, version) in COLLECTIONS.items():

    rule:
        name:
            collecting_rule(one)
        input:
            tables=[f"{OUT}/collect/{one}/{unit}.parquet" for unit in COLLECTED[benchmark]],
            code=lambda w, benchmark=benchmark: code("pack", {"benchmark": benchmark}),
        output:
            table=f"{OUT}/collect/{one}.parquet",
            meta=f"{OUT}/collect/{one}.json",
        log:
            f"{OUT}/logs/collect/{one}.log",
        threads: 1
        resources:
            gpu=0,
            mem_mb=3000,
            runtime=quick,
        params:
            **made_with(constant(settings.pack_spec(SETTINGS, benchmark, version))),
            code=planned,
        message:
            f"join the units of {one} and compare them with the shipped table: {OUT}/collect/{one}.json"
        shell:
            "python -m metabo.stages.pack --spec {params.spec:q} --code {params.code}"
            " --in-tables {input.tables} --out {output.table}"
            " > {log} 2>&1"


for benchmark in COLLECTED:

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
            runtime=quick,
        params:
            **made_with(constant(specs.ArchiveSpec(benchmark, source_of(benchmark), version_of(benchmark)))),
            code=planned,
        message:
            f"write {registry.benchmark(benchmark).archive} from the {source_of(benchmark)} table, version {version_of(benchmark)}"
        shell:
            "python -m metabo.stages.archive --spec {params.spec:q} --code {params.code}"
            " --in-table {input.table} --out {output.archive}"
            " --sidecar {output.meta} > {log} 2>&1"
