# Synthetic studies -> results/{scale}/studies: functions drawn by the study itself, no benchmark.
def alone(wildcards):
    return registry.study(wildcards.study).alone


rule run_study:
    input:
        code=lambda w: code("study", {"study": w.study}),
    output:
        table=OUT + "/studies/{study}.parquet",
        meta=OUT + "/studies/{study}.json",
    log:
        OUT + "/logs/studies/{study}.log",
    benchmark:
        OUT + "/benchmarks/studies/{study}.tsv"
    wildcard_constraints:
        study="|".join(registry.studies()),
    # the work has one core; a study that measures times claims the machine, since its slopes feel what runs beside it
    threads: lambda w: every_core() if alone(w) else 1
    resources:
        gpu=0,
        mem_mb=5000,
        runtime=long,
        slurm_extra=lambda w: "--exclusive" if alone(w) else "",
    params:
        **made_with(lambda w: settings.study_spec(SETTINGS, w.study)),
        code=planned,
    message:
        "run study {wildcards.study}"
    shell:
        "python -m metabo.stages.study --spec {params.spec:q} --code {params.code}"
        " --out {output.table} --threads 1 > {log} 2>&1"
