"""How XLA compiles for CPUs. Not bookkeeping: another way of compiling rounds otherwise, which fits may carry on."""

CPU_FLAGS = "--xla_backend_optimization_level=1 --xla_cpu_use_fusion_emitters=false"
"""Compilation is a third of the work at the default scale. Level 1 takes a third less of it and computes as fast;
without the fusion emitters nearly half of the rest goes, and some loops are a little slower. XLA ends at a flag that it
does not know, so both are to be tried with another jaxlib."""
