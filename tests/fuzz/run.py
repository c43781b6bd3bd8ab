"""Run the fuzzers for some time, ``python tests/fuzz/run.py 600``; exit code 1 is a finding.

Every fuzzer runs in rounds with new seeds, each round in a process of its own: one that ends is a
finding too.
"""

# ruff: noqa: T201

import itertools
import os
import random
import subprocess
import sys
import time
from pathlib import Path

ROUND = 20  # seconds of a fuzzer before the next one has its turn


def main(seconds: float) -> int:
    """Run rounds until the time is up; say what was found."""
    tests = Path(__file__).with_name("test_fuzz.py")
    listed = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--collect-only", str(tests)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    names = [line for line in listed.stdout.splitlines() if "::" in line]
    random.shuffle(names)  # a short run does not reach all
    end = time.monotonic() + seconds
    for number in itertools.count(time.time_ns()):
        for name in names:
            if time.monotonic() > end:
                print(f"no finding in {seconds:g} s")
                return 0
            if not _round(name, number, min(ROUND, end - time.monotonic())):
                return 1
    return 0


def _round(name: str, seed: int, seconds: float) -> bool:
    """Run one fuzzer for some seconds; whether it found nothing."""
    command = [
        sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", name,
        "--hypothesis-profile=fuzz", f"--hypothesis-seed={seed}",
    ]  # fmt: skip
    environment = {**os.environ, "LATENTREE_FUZZ_SECONDS": str(seconds)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        print(done.stdout[-5_000:], done.stderr[-2_000:])
        print(f"finding: exit code {done.returncode}, seed {seed}, {name}")
    else:
        print(
            f"{name.rpartition('::')[2]}: seed {seed}, {done.stdout.splitlines()[-1]}", flush=True
        )
    return done.returncode == 0


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1])))
