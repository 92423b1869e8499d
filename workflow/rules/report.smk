# Artefacts and claims -> the report: notebooks as HTML beside them, results/{scale}/scorecard.csv and index.html.
EVIDENCE = "evidence"
SHOWN = {}
for artefact in ENABLED:
    SHOWN.setdefault(artefact.entry.paper, []).append(artefact)
TEMPLATES = relative(sorted(Path(SOURCE, "metabo/report").glob("templates/*")))
OF_NOTEBOOKS = [path for path in TEMPLATES if Path(path).name.startswith(("base.", "style.", "common.", "notebook."))]


def made(artefacts, name):
    return [f"{OUT}/{artefact.place}/{name}" for artefact in artefacts]


def names(artefacts):
    return tuple(artefact.name for artefact in artefacts)


def evidence(paper, artefacts):
    """Return the claims that each artefact is evidence for; none if the paper's claims are not judged."""
    return tuple(artefact.entry.claims if paper in JUDGED else () for artefact in artefacts)


def recorded(wildcards):
    """Return the state of the recorded results whose verdicts the report shows: their manifests and tables of claims.

    No inputs: a damaged one stops no run, the report says that it is left out.
    """
    named = sorted(path for end in ("manifest.json", "claims/**/*.csv") for path in Path(EVIDENCE).glob(f"[!.]*/{end}"))
    return canonical({path.as_posix(): digest(path) if os.access(path, os.R_OK) else "" for path in named})


for paper, shown in SHOWN.items():

    rule:
        name:
            f"pages_{paper}"
        input:
            notebooks=made(shown, "notebook.ipynb"),
            sheets=[f"{SHEETS}/{paper}/claims.yaml"] if paper in JUDGED else [],
            templates=OF_NOTEBOOKS,
            code=lambda w: code("pages", {}),
        output:
            pages=made(shown, "notebook.html"),
            meta=f"{OUT}/{paper}/pages.json",
        log:
            f"{OUT}/logs/{paper}/pages.log",
        benchmark:
            f"{OUT}/benchmarks/{paper}/pages.tsv"
        threads: 1
        resources:
            gpu=0,
            mem_mb=1000,
            runtime=quick,
        params:
            code=planned,
            spec=constant(written(specs.PagesSpec(names(shown), f"{OUT}/index.html", paper, evidence(paper, shown)))),
            sheets=lambda w, input: f"--in-sheets {input.sheets}" if input.sheets else "",
        message:
            f"notebooks of {paper} as HTML"
        shell:
            "python -m metabo.stages.pages --spec {params.spec:q} --code {params.code}"
            " {params.sheets} --in-notebooks {input.notebooks}"
            " --out {output.pages} --sidecar {output.meta} --threads {threads} > {log} 2>&1"


rule report:
    input:
        artefacts=made(ENABLED, "provenance.json"),
        pages=[f"{OUT}/{paper}/pages.json" for paper in SHOWN],
        claims=rules.claims.input,
        gates=expand(f"{OUT}/claims/{{paper}}-gates.csv", paper=JUDGED),
        catalogue="workflow/catalogue.yaml",
        papers=os.path.relpath(Path(SOURCE, "metabo/report/papers.yaml")),
        templates=TEMPLATES,
        code=lambda w: code("report", {}),
    output:
        page=f"{OUT}/index.html",
        scorecard=f"{OUT}/scorecard.csv",
        multiverse=f"{OUT}/multiverse.csv",
        meta=f"{OUT}/index.json",
    log:
        f"{OUT}/logs/report.log",
    threads: 1
    resources:
        gpu=0,
        mem_mb=1000,
        runtime=quick,
    params:
        code=planned,
        spec=constant(written(specs.ReportSpec(SETTINGS.scale, (*SHOWN,), names(ENABLED)))),
        claims=lambda w, input: f"--in-claims {input.claims} --in-gates {input.gates}" if input.claims else "",
        recorded=recorded,
    message:
        f"write {OUT}/index.html and say where the time went, rule by rule"
    shell:
        "python -m metabo.stages.report --spec {params.spec:q} --code {params.code}"
        " --in-artefacts {input.artefacts} --in-pages {input.pages}"
        " {params.claims} --evidence {EVIDENCE} --in-catalogue {input.catalogue} --out {output.page} --out-scorecard {output.scorecard}"
        " --out-multiverse {output.multiverse} --threads {threads} > {log} 2>&1"
