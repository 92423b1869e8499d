# Checks of the papers' theory -> results/{scale}/theory/{paper}/{check}.json: no data, one job per check.
THEORY = OUT + "/theory/{paper}/{check}"


rule check_theory:
    input:
        code=lambda w: code("theory", {"paper": w.paper, "check": w.check}),
    output:
        verdicts=THEORY + ".json",
        meta=THEORY + ".meta.json",
    log:
        OUT + "/logs/theory/{paper}/{check}.log",
    benchmark:
        OUT + "/benchmarks/theory/{paper}/{check}.tsv"
    wildcard_constraints:
        paper="|".join(registry.papers_with_checks()),
        check="[a-z0-9_]+",
    group:
        together("check_theory", shared_theory)
    threads: 1
    resources:
        gpu=0,
        mem_mb=3000,
        runtime=quick,
    params:
        **made_with(lambda w: settings.theory_spec(SETTINGS, w.paper, w.check)),
        code=planned,
    message:
        "check {wildcards.check} of {wildcards.paper}"
    shell:
        "python -m metabo.stages.theory --spec {params.spec:q} --code {params.code}"
        " --out {output.verdicts} --sidecar {output.meta}"
        " --threads {threads} > {log} 2>&1"
