"""Cores, compiler, memory and random keys. This module stays empty, because cores are pinned before JAX is imported."""
