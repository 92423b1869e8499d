"""Methods: one package per family; `methods.yaml` registers every method with its settings (see
`metabo.plan.registry`)."""
