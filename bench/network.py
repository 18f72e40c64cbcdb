#!/usr/bin/env python3
"""What a message between hosts takes: peal over sockets and over UCX beside UCX itself, Open MPI over TCP and a floor
of bare sockets, on one machine over its loopback, in turns.

    ninja -C build tools/peal bench-peers && bench/network.py [--build build] [--rounds 9] [--result FILE]

A case is COUNT messages of BYTES from one process to another, and as many back once all have come; the number is half of
that. peal runs a spec of these messages (as users type them: wait, unpack, pack, send), in mode sync, with
PEAL_TEST_HOSTS=2, so that both processes meet over TCP as on two hosts, and verifies it against serial first; the others
verify what comes. Medians over rounds, and of the ratios round by round. Two quiet cores at least."""

import argparse
import datetime
import json
import os
import platform
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIMIT_S = 120
# bytes, messages, rounds of a measurement
CASES = {"8 B": (8, 1, 20000), "64 KiB": (65536, 1, 3000), "1 MiB": (1 << 20, 1, 400), "26 x 64 B": (64, 26, 5000)}
# (of, against, at most): what we want
BARS = {"8 B": [("peal tcp", "floor", 1.15)], "64 KiB": [("peal tcp", "ucx", 0.6)], "1 MiB": [("peal tcp", "floor", 1.1)],
        "26 x 64 B": [("peal tcp", "openmpi", 0.15)]}
OPENMPI = ["mpirun.openmpi", "--oversubscribe", "--bind-to", "none", "-n", "2", "--mca", "pml", "ob1", "--mca", "btl",
           "tcp,self", "--mca", "btl_tcp_if_include", "lo"]
ENVIRONMENT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "UCX_TLS": "tcp,self",
               "UCX_NET_DEVICES": "lo"}


def spec_of(bytes_, count):
    """COUNT messages there and back; each rank sends what it has received."""
    lines = ["peal: 1", "name: pingpong", "buffers:"]
    lines += [f"  m{k}: {{count: {bytes_ // 8}, keep: true}}" for k in range(count)]
    lines += ["repeat: 1000", "step:"]
    for verb, end, rank in (("send", "to: 1", 0), ("recv", "from: 0", 1), ("send", "to: 0", 1), ("recv", "from: 1", 0)):
        lines += [f"  - {{{verb}: m{k}, {end}, tag: {k}, when: rank == {rank}}}" for k in range(count)]
    return "\n".join(lines) + "\n"


def output_of(words, **more):
    env = {**os.environ, **ENVIRONMENT, **more}
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=LIMIT_S, env=env, check=False)
    if done.returncode:
        raise RuntimeError(f"{words[0]}: exit code {done.returncode}: {(done.stderr or done.stdout).strip()[-300:]}")
    return done.stdout


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def by_peal(options, case, transport):
    bytes_, count, rounds = CASES[case]
    name = os.path.join(options.folder, f"{bytes_}x{count}.yaml")
    if not os.path.exists(name):
        with open(name, "w", encoding="ascii") as file:
            file.write(spec_of(bytes_, count))
    words = [options.build / "tools" / "peal", "run", name, "-n", "2", "--backend", "host", "--mode", "sync", "--transport", transport,
             "--json"]
    if (case, transport) not in options.verified:
        output_of([*words, "--steps", "20", "--verify"], PEAL_TEST_HOSTS="2")
        options.verified.add((case, transport))
    result = json.loads(output_of([*words, "--steps", rounds], PEAL_TEST_HOSTS="2"))
    return result["modes"][-1]["seconds_per_step"]["median"] / 2


def by_floor(options, case):
    """The better of two ways to wait."""
    words = [options.build / "bench" / "network_floor", *CASES[case]]
    return min(float(output_of([*words, wait])) for wait in ("spin", "sleep")) * 1e-9


def by_openmpi(options, case):
    return float(output_of([*OPENMPI, options.build / "bench" / "network_openmpi", *CASES[case]])) * 1e-9


def by_ucx(_, case):
    """The best of its tests: by tag and by active message; one message only."""
    bytes_, count, rounds = CASES[case]
    if count > 1:
        return None
    times = []
    for test in ("tag_lat", "ucp_am_lat"):
        port = free_port()
        words = ["ucx_perftest", "-p", port, "-t", test, "-s", bytes_, "-n", rounds]
        with subprocess.Popen([str(w) for w in [*words, "-c", 1]], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              env={**os.environ, **ENVIRONMENT}) as server:
            try:
                for _ in range(50):  # until it listens
                    try:
                        text = output_of([*words, "-c", 0, "localhost"])
                        break
                    except RuntimeError:
                        text = ""
                        if server.poll() is not None:
                            break
            finally:
                server.terminate()
        found = re.search(r"^Final:\s+\d+\s+([0-9.]+)", text, re.M)
        if found:
            times.append(float(found.group(1)) * 1e-6)
    return min(times) if times else None


WAYS = {"floor": by_floor, "ucx": by_ucx, "openmpi": by_openmpi,
        "peal tcp": lambda options, case: by_peal(options, case, "auto"),
        "peal ucx": lambda options, case: by_peal(options, case, "auto+ucx")}


def measure(options):
    """times[case][way]: a number a round. A way that fails is told once and left out."""
    times = {case: {way: [] for way in WAYS} for case in CASES}
    failed = set()
    for number in range(options.rounds):
        for case in CASES:
            for way, run in WAYS.items():
                if (case, way) in failed:
                    continue
                try:
                    value = run(options, case)
                except (RuntimeError, OSError, ValueError, subprocess.TimeoutExpired) as why:
                    print(f"{case}, {way}: left out: {why}", file=sys.stderr)
                    value = None
                if value is None:
                    failed.add((case, way))
                else:
                    times[case][way].append(value)
        print(f"round {number + 1} of {options.rounds}", file=sys.stderr)
    return times


def table(times):
    yield f"{'us one way':12}" + "".join(f"{way:>12}" for way in WAYS)
    for case, ways in times.items():
        yield f"{case:12}" + "".join(f"{statistics.median(t) * 1e6:12.2f}" if t else f"{'-':>12}" for t in ways.values())
    yield ""
    for case, bars in BARS.items():
        for of, against, most in bars:
            pairs = list(zip(times[case][of], times[case][against]))
            if pairs:
                ratio = statistics.median(a / b for a, b in pairs)
                yield f"{case}: {of} / {against} = {ratio:.2f} (wanted: at most {most}){'' if ratio <= most else ': MISSED'}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--result", help="a file for what is printed")
    options = parser.parse_args()
    options.verified = set()
    with tempfile.TemporaryDirectory() as options.folder:
        times = measure(options)
    versions = [line for word in (["mpirun.openmpi", "--version"], ["ucx_info", "-v"]) if shutil.which(word[0])
                for line in output_of(word).splitlines()[:1]]
    lines = [f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d %H:%M UTC}, {platform.machine()}, {os.cpu_count()} cores, "
             f"{options.rounds} rounds; {'; '.join(versions)}", *table(times)]
    print("\n".join(lines))
    if options.result:
        Path(options.result).write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
