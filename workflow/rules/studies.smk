# Synthetic studies -> results/{scale}/studies: functions drawn by the study itself, no benchmark.
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
    # the work has one core; a study that measures times claims all of them, since its slopes feel what runs beside it
    threads: lambda w: workflow.cores if registry.study(w.study).get("alone") else 1
    resources:
        gpu=0,
        mem_mb=3000,
    params:
        spec=lambda w: canonical(settings.study_spec(config, w.study)),
    message:
        "run study {wildcards.study}"
    shell:
        "python -m metabo.stages.study --spec {params.spec:q} --out {output.table} --threads 1 > {log} 2>&1"
