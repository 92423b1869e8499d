# Prior -> online tuning (results/{scale}/online): every evaluation trains a network, so a job takes minutes.
ONLINE = "{benchmark}/{split}/{method}"


rule run_online:
    input:
        data=OUT + "/data/{benchmark}.npz",
        prior=lambda w: prior_file(w.benchmark, w.split, w.method),
        code=lambda w: code("online", {"method": w.method, "benchmark": w.benchmark}),
    output:
        table=OUT + f"/online/{ONLINE}.parquet",
        meta=OUT + f"/online/{ONLINE}.json",
    log:
        OUT + f"/logs/online/{ONLINE}.log",
    benchmark:
        OUT + f"/benchmarks/online/{ONLINE}.tsv"
    threads: 1
    resources:
        gpu=GPU,
        mem_mb=memory,
        runtime=minutes("run_online"),
    params:
        **made_with(lambda w: settings.online_spec(SETTINGS, w.benchmark, w.split, w.method)),
        code=planned,
    message:
        "tune online with {wildcards.method} on {wildcards.benchmark}, {wildcards.split} (progress: {log})"
    shell:
        "python -m metabo.stages.online --spec {params.spec:q} --code {params.code}"
        " --in-data {input.data} --in-prior {input.prior}"
        " --out {output.table} --threads {threads} --gpu {resources.gpu} > {log} 2>&1"
