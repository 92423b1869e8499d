# Prior -> trajectories (results/{scale}/bo). Tasks, priors and seeds are inside one job: start-up and compilation cost
# more than most of the work.
TRAJECTORY = "{benchmark}/{split}/{method}-{acquisition}"


rule run_bo:
    input:
        data=OUT + "/data/{benchmark}.npz",
        prior=lambda w: prior_file(w.benchmark, w.split, w.method),
        code=lambda w: code("bo", {"method": w.method}),
    output:
        table=OUT + f"/bo/{TRAJECTORY}.parquet",
        meta=OUT + f"/bo/{TRAJECTORY}.json",
    log:
        OUT + f"/logs/bo/{TRAJECTORY}.log",
    benchmark:
        OUT + f"/benchmarks/bo/{TRAJECTORY}.tsv"
    group:
        together("run_bo", shared_numeric("run_bo"))
    threads: 1
    resources:
        gpu=GPU,
        mem_mb=memory,
        runtime=minutes("run_bo"),
    params:
        **made_with(lambda w: settings.bo_spec(SETTINGS, w.benchmark, w.split, w.method, w.acquisition)),
        code=planned,
        flags=lambda w: canonical(codegraph.flags("bo", w.method)),
    message:
        "run BO with {wildcards.method}, {wildcards.acquisition}, on {wildcards.benchmark}, {wildcards.split}"
    shell:
        "python -m metabo.stages.bo --spec {params.spec:q} --code {params.code}"
        " --in-data {input.data} --in-prior {input.prior}"
        " --out {output.table} --threads {threads} --gpu {resources.gpu} > {log} 2>&1"
