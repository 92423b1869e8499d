"""Cores, compiler, memory and random keys. Stays without code: cores are pinned before JAX is imported."""
