"""Try what goes wrong outside the code: `python -m tests.adversary`, part of `make test-faults`.

It prints how many tries of each class of faults survived (`tests.adversary.judge` says what that means), and for each
that failed what happened and the options that make it again. The exit status is 1 if one failed.
"""

import argparse
import secrets
import sys
import time

from tests.adversary.trying import CLASSES, attempts, numbers


def main(arguments: list[str] | None = None) -> int:
    """Make the tries, print the table, and return how many failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.adversary", description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**9), help="of all tries (default: a new one)")
    parser.add_argument("--class", dest="classes", action="append", choices=list(CLASSES), help="only this class")
    parser.add_argument("--share", type=float, default=1.0, help="part of the tries that is made (default: 1, all)")
    parser.add_argument("--only", type=int, help="the one try with this number")
    args = parser.parse_args(arguments)
    print(f"seed {args.seed}", flush=True)
    print(f"{'class':12} {'tried':>6} {'survived':>9} {'failed':>7}   right value, refused, seconds of CPU", flush=True)
    total = [0, 0]
    for name in args.classes or CLASSES:
        begun = time.process_time()
        chosen = numbers(name, args.share) if args.only is None else [args.only]
        tried = list(attempts(name, args.seed, chosen))
        failed = [one for one in tried if one.verdict.wrong]
        ends = [sum(one.verdict.end == end and not one.verdict.wrong for one in tried) for end in ("value", "refusal")]
        row = f"{name:12} {len(tried):6} {len(tried) - len(failed):9} {len(failed):7}   {ends[0]}, {ends[1]}"
        print(f"{row}, {time.process_time() - begun:.0f}", flush=True)
        for one in failed:
            again = f"--class {name} --seed {args.seed} --only {one.number}"
            print(f"  {again}: {one.what}: {one.verdict.wrong}", flush=True)
        total = [total[0] + len(tried), total[1] + len(failed)]
    print(f"{'all':12} {total[0]:6} {total[0] - total[1]:9} {total[1]:7}", flush=True)
    return total[1]


if __name__ == "__main__":
    sys.exit(bool(main()))
