# Hosts for tests: network namespaces h0, h1, ... on a bridge, in a network and with mounts and processes of the test's own, all
# of which is gone when the test ends.
import os
import shutil
import subprocess
import sys

INSIDE = "PEAL_TESTS_NETWORK"
BEGIN = """set -e
mount -t tmpfs none /run
mkdir /run/netns
ip link set lo up
ip link add hosts type bridge
ip addr add 10.213.0.254/24 dev hosts
ip link set hosts up
"""
HOST = """
ip netns add h{number}
ip link add v{number} type veth peer name eth0 netns h{number}
ip link set v{number} master hosts up
ip -n h{number} link set lo up
ip -n h{number} addr add 10.213.0.{last}/24 dev eth0
ip -n h{number} link set eth0 up
"""
AGENT = "/run/agent"
# As ssh would: the words of the command come as one line. APART: a folder that the hosts do not share.
AGENT_TEXT = """#!/bin/sh
host=$1
shift
exec nsenter --net=/run/netns/$host unshare -m -u sh -c "
hostname $host
mount -t tmpfs none /dev/shm
test -z \"$APART\" || mount -t tmpfs none \"$APART\"
export TMPDIR=/dev/shm
$*"
"""
# Small ones; mesh has parts for 4 ranks.
SAMPLES = {"jacobi2d/jacobi2d": ["nx=64", "ny=66"], "jacobi_until/jacobi_until": ["nx=64", "ny=66"], "heat3d/heat3d": [],
           "cg/cg": ["n=64"], "halo/halo": [], "halo/short": [], "particles/particles": [], "bfs/bfs": [],
           "hdiff/hdiff": [], "hdiff/pair": [], "vcycle/vcycle": [], "mesh/mesh": [], "denoise/denoise": [],
           "cavity/cavity": ["n=32"], "hpgmg/hpgmg": ["n=16"]}


def sample_words(root, sample):
    """What `peal` runs of a sample."""
    words = ["run", os.path.join(root, "samples", sample + ".yaml"), "--mode", "all", "--verify", "--steps", "12",
             "--deadline", "30s"]
    for word in SAMPLES[sample]:
        words += ["--set", word]
    return words


def enter(*tools, packages="", more=()):
    """This test again, inside; not root: as root of a user namespace. more: for unshare. Skipped (77) without the tools."""
    if INSIDE in os.environ:
        return
    words = ["unshare", "-n", "-m", *more] if os.geteuid() == 0 else ["unshare", "-U", "-r", "-n", "-m", *more]
    os.environ["PATH"] += ":/usr/sbin:/sbin"  # where tools of administrators are
    missing = [tool for tool in ("ip", "nsenter", "unshare", *tools) if not shutil.which(tool)]
    if missing or subprocess.run([*words, "true"], check=False, capture_output=True).returncode:
        why = f"there is no {missing[0]}{packages and f' (packages {packages})'}" if missing else "network namespaces cannot be made"
        print(f"skipped: {why}")
        sys.exit(77)
    os.environ[INSIDE] = "1"
    os.execvp(words[0], [*words, sys.executable, *sys.argv])


def make(hosts):
    """Once inside."""
    script = BEGIN + "".join(HOST.format(number=number, last=number + 1) for number in range(hosts))
    subprocess.run(["sh", "-c", script], check=True)
    with open(AGENT, "w", encoding="ascii") as file:  # for launchers that start their daemons by ssh
        file.write(AGENT_TEXT)
    os.chmod(AGENT, 0o755)


def inside(*programs):
    """Lines about the processes of these programs on the hosts, and their process numbers."""
    here = {os.stat(f"/run/netns/{host}").st_ino for host in os.listdir("/run/netns")}
    lines, numbers = [], []
    for number in filter(str.isdigit, os.listdir("/proc")):
        try:
            program = os.path.basename(os.readlink(f"/proc/{number}/exe"))
            if program in programs and os.stat(f"/proc/{number}/ns/net").st_ino in here:
                threads = [read(f"/proc/{number}/task/{thread}/wchan") for thread in os.listdir(f"/proc/{number}/task")]
                lines.append(f"{number} {read(f'/proc/{number}/cmdline')}: threads wait in {', '.join(threads)}")
                numbers.append(int(number))
        except OSError:
            pass  # it has ended
    return lines, numbers


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read().replace("\0", " ").strip()
