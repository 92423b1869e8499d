"""How XLA compiles for CPUs. This can change results: other flags round differently, and a fit may amplify that."""

CPU_FLAGS = "--xla_backend_optimization_level=1 --xla_cpu_use_fusion_emitters=false"
"""Compilation is a third of the work at the default scale. Level 1 cuts it by a third and computes as fast. Turning the
fusion emitters off cuts nearly half of the rest and makes some loops a little slower. XLA aborts on a flag that it does
not know, so try both again with another jaxlib."""
