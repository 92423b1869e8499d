"""Cases of checks of BO runs: name -> (whether the result is a good one -> evidence, arguments)."""

from tests.papers.engine.claims.made import bo, either

BO = {
    "lower_regret": lambda good: (
        bo(h_nll=0.1, rand=either(good, 0.5, 0.05), fsbo=0.6),
        {"lower": ["h_nll"], "at": [1, "area", [2, 4]]},
    ),
    "lower_in_pairs": lambda good: (
        bo(
            fsbo__held_out_points_100=0.1,
            fsbo__held_out_sweep=either(good, 0.2, 0.05),
            ablr__held_out_points_100=0.1,
            ablr__held_out_sweep=0.3,
        ),
        {"pairs": [[f"{m}@held_out_points_100", f"{m}@held_out_sweep"] for m in ("fsbo", "ablr")]},
    ),
    "more_solved": lambda good: (
        bo(h_ekl=either(good, 0.001, 0.02), rand=0.5, h_nll=either(good, 0.5, 0.001)),
        {"more": [["h_ekl"]], "than": ["rand", "h_nll"], "thresholds": [0.05, 0.01]},
    ),
    "mostly_ahead": lambda good: (
        bo(h_nll=0.1, rand=either(good, 0.5, 0.05), stbo=either(good, 0.4, 0.02), maf=0.05, rfgp=0.6),
        {"methods": ["h_nll"], "than": ["rand", "stbo", "maf", "rfgp"]},
    ),
    "not_beaten": lambda good: (
        bo(stbo=0.3, maf=either(good, 0.29, 0.1), rand=0.5),
        {"methods": ["stbo"], "by": ["maf"]},
    ),
    "place": lambda good: (
        bo(ablr=0.4, rand=0.1, maf=either(good, 0.2, 0.6)),
        {"method": "ablr", "at": 100, "first": 3},
    ),
    "below_most": lambda good: (
        bo(rand=0.3, fsbo=0.1, h_nll=0.2, maf=either(good, 0.1, 0.5), mimo=0.5, h_ekl=either(good, 0.1, 0.4)),
        {"method": "rand"},
    ),
    "always_first": lambda good: (
        bo(h_nll=[0.3, 0.2, 0.1, 0.1], rand=[either(good, 0.4, 0.2), 0.4, 0.3, 0.3]),
        {"method": "h_nll"},
    ),
    "reaches_place": lambda good: (
        bo(stboh=[0.5, either(good, 0.2, 0.5), 0.2, 0.2], rand=0.3, fsbo=0.1),
        {"method": "stboh", "best": 2, "within": [1, 2]},
    ),
    "plateaus": lambda good: (bo(stboh=[0.5, 0.3, 0.3, either(good, 0.29, 0.1)]), {"method": "stboh", "start": 2}),
    "lowest_rank": lambda good: (
        bo(tasks=16, h_ekl=[0.5, 0.5, 0.1, 0.1], rand=[0.3, 0.3, 0.3, either(good, 0.3, 0.05)], fsbo=0.6),
        {"method": "h_ekl", "within": [4, 100]},
    ),
    "rank_improves": lambda good: (
        bo(tasks=12, mimo=either(good, [0.5, 0.5, 0.1, 0.1], 0.1), rand=either(good, 0.3, [0.5, 0.5, 0.05, 0.05])),
        {"method": "mimo", "early": [1, 2], "late": 100},
    ),
    "larger_gain": lambda good: (
        bo(
            h_nll__held_out_points_10=0.5,
            h_nll__held_out_points_100=0.1,
            mimo__held_out_points_10=either(good, 0.2, 0.9),
            mimo__held_out_points_100=0.1,
        ),
        {"methods": ["h_nll"], "others": ["mimo"], "fewer": "held_out_points_10", "more": "held_out_points_100"},
    ),
}
