# Artefacts -> verdicts (results/{scale}/claims/{paper}.csv): every claim of a paper, judged on what this run made, and
# the gates that they rest on.
SHEETS = "src/metabo/papers"
DRAWN = {artefact.entry.paper for artefact in ENABLED}
JUDGED = [paper for paper in SETTINGS.run.papers if paper in DRAWN and Path(f"{SHEETS}/{paper}/claims.yaml").is_file()]


def judged(paper):
    """Return the artefacts of this run on which claims of a paper are tested, and those with controls of its methods."""
    return [a for a in ENABLED if a.entry.paper == paper and a.judges]


rule judge_claims:
    input:
        sheet=SHEETS + "/{paper}/claims.yaml",
        catalogue="workflow/catalogue.yaml",
        schema="workflow/schemas/claims.yaml",
        data=lambda w: [f"{OUT}/{a.place}/data.csv" for a in judged(w.paper)],
        tables=lambda w: sorted({path for a in judged(w.paper) for path in table_files(a, *a.files)}),
        code=lambda w: code("claims", {"paper": w.paper}),
    output:
        table=OUT + "/claims/{paper}.csv",
        gates=OUT + "/claims/{paper}-gates.csv",
        meta=OUT + "/claims/{paper}.json",
    log:
        OUT + "/logs/claims/{paper}.log",
    benchmark:
        OUT + "/benchmarks/claims/{paper}.tsv"
    wildcard_constraints:
        paper="|".join(JUDGED) or "none",
    threads: 1
    resources:
        gpu=0,
        mem_mb=4000,
        runtime=quick,
    params:
        code=planned,
        spec=lambda w: written(specs.ClaimsSpec(w.paper, OUT, tuple((a.id, a.benchmark) for a in judged(w.paper)))),
    message:
        "judge the claims of {wildcards.paper}"
    shell:
        "python -m metabo.stages.claims --spec {params.spec:q} --code {params.code}"
        " --in-sheet {input.sheet} --in-catalogue {input.catalogue}"
        " --in-data {input.data} --out {output.table} --out-gates {output.gates} --threads {threads} > {log} 2>&1"


rule claims:
    input:
        expand(f"{OUT}/claims/{{paper}}.csv", paper=JUDGED),
