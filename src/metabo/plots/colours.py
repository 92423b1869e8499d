"""How different colours look, to readers with full colour vision and to colour-blind ones. This does not use
matplotlib."""

import math
from functools import cache

import numpy as np

FULL = "full vision"
DEFICIENCIES = {
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
"""Machado, Oliveira and Fernandes (2009), severity 1.0; rows act on linear RGB."""
LEAST = 12.0
"""Colours closer than this (Delta E 1976) cannot be told apart at the width of a line."""


@cache
def lab(colour: str, vision: str = FULL) -> tuple[float, float, float]:
    """Return CIELAB (sRGB, D65) of a colour "#rrggbb" as a reader with full vision or one of DEFICIENCIES sees it."""
    srgb = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    linear = np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
    seen = np.clip(np.array(DEFICIENCIES.get(vision, np.eye(3))) @ linear, 0, 1)
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ seen
    t = xyz / np.array([0.9505, 1.0, 1.089])
    f = np.where(t > (6 / 29) ** 3, np.cbrt(t), t / (3 * (6 / 29) ** 2) + 4 / 29)
    return float(116 * f[1] - 16), float(500 * (f[0] - f[1])), float(200 * (f[1] - f[2]))


def distance(first: str, second: str, vision: str = FULL) -> float:
    """Return Delta E (1976) of two colours to a reader with this vision."""
    return math.dist(lab(first, vision), lab(second, vision))
