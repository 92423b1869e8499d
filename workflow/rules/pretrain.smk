# Benchmark -> prior (results/{scale}/priors) -> its test NLL and EKL (results/{scale}/evaluation)
PRIOR = "{benchmark}/{split}/{method}"


rule pretrain:
    input:
        data=OUT + "/data/{benchmark}.npz",
        fits=lambda w: fits_file(w.benchmark, w.split, w.method),
        code=lambda w: code("pretrain", {"method": w.method}),
    output:
        prior=OUT + f"/priors/{PRIOR}.npz",
        meta=OUT + f"/priors/{PRIOR}.json",
    log:
        OUT + f"/logs/priors/{PRIOR}.log",
    benchmark:
        OUT + f"/benchmarks/priors/{PRIOR}.tsv"
    group:
        together("pretrain", shared_numeric("pretrain"))
    threads: 1
    resources:
        gpu=GPU,
        mem_mb=memory,
        runtime=minutes("pretrain"),
    params:
        **made_with(lambda w: settings.pretrain_spec(SETTINGS, w.benchmark, w.split, w.method)),
        code=planned,
        flags=lambda w: canonical(codegraph.flags("pretrain", w.method)),
        fits=lambda w, input: f"--in-fits {input.fits}" if input.fits else "",
    message:
        "pre-train {wildcards.method} on {wildcards.benchmark}, {wildcards.split}"
    shell:
        "python -m metabo.stages.pretrain --spec {params.spec:q} --code {params.code}"
        " --in-data {input.data} {params.fits}"
        " --out {output.prior} --threads {threads} --gpu {resources.gpu} > {log} 2>&1"


rule evaluate:
    input:
        data=OUT + "/data/{benchmark}.npz",
        prior=lambda w: prior_file(w.benchmark, w.split, w.method),
        code=lambda w: code("evaluate", {"method": w.method}),
    output:
        table=OUT + f"/evaluation/{PRIOR}.parquet",
        meta=OUT + f"/evaluation/{PRIOR}.json",
    log:
        OUT + f"/logs/evaluation/{PRIOR}.log",
    benchmark:
        OUT + f"/benchmarks/evaluation/{PRIOR}.tsv"
    group:
        together("evaluate", shared_numeric("evaluate"))
    threads: 1
    resources:
        gpu=GPU,
        mem_mb=memory,
        runtime=minutes("evaluate"),
    params:
        **made_with(lambda w: settings.evaluate_spec(SETTINGS, w.benchmark, w.split, w.method)),
        code=planned,
    message:
        "evaluate the priors of {wildcards.method} on {wildcards.benchmark}, {wildcards.split}"
    shell:
        "python -m metabo.stages.evaluate --spec {params.spec:q} --code {params.code}"
        " --in-data {input.data} --in-prior {input.prior}"
        " --out {output.table} --threads {threads} --gpu {resources.gpu} > {log} 2>&1"
