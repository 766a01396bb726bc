"""The machine: its installed programs, its cores, and the CPU use of other processes."""

import os
import re
import shutil
import subprocess
import time

from servers import TICKS, BenchmarkError

# Debian starts a service when it is installed; policy-rc.d prevents this during the installation.
INSTALL = """
set -e
if [ ! -e /usr/sbin/policy-rc.d ]; then
    trap 'rm -f /usr/sbin/policy-rc.d' EXIT
    printf '#!/bin/sh\\nexit 101\\n' >/usr/sbin/policy-rc.d && chmod 755 /usr/sbin/policy-rc.d
fi
apt-get update -q
DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$@"
"""
# Varnish compiles its VCL.
PACKAGES = {
    "nginx": ["nginx"],
    "squid": ["squid"],
    "varnishd": ["varnish", "gcc", "libc6-dev"],
    "wrk": ["wrk"],
    "h2load": ["nghttp2-client"],
    "curl": ["curl"],
    "openssl": ["openssl"],
    "taskset": ["util-linux"],
}

# In Debian, /usr/sbin is not on a user's path.
os.environ["PATH"] += os.pathsep + "/usr/sbin"


def install(programs):
    missing = [package for program in programs if not shutil.which(program) for package in PACKAGES[program]]
    if not missing:
        return
    print("installing", *missing)
    as_root = [] if os.geteuid() == 0 else ["sudo"]
    if as_root and not shutil.which("sudo"):
        raise BenchmarkError(f"not root and no sudo: install {' '.join(missing)} yourself")
    subprocess.run([*as_root, "sh", "-c", INSTALL, "install", *missing], check=True)


def cores():
    """The core for the proxies and the one for the load."""
    available = sorted(os.sched_getaffinity(0))
    if len(available) < 2:
        raise BenchmarkError("two cores are needed: one for the proxy, one for the load and the origin")
    return available[0], available[1]


def busy_seconds(of_cores):
    """CPU time used on these cores by all processes."""
    total = 0
    with open("/proc/stat") as file:
        for line in file:
            name, *ticks = line.split()
            if name in {f"cpu{core}" for core in of_cores}:
                user, nice, system, _, _, irq, softirq, steal = map(int, ticks[:8])
                total += user + nice + system + irq + softirq + steal
    return total / TICKS


def first_line(*command, match=r".+"):
    try:
        output = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    except OSError:
        return "unknown"
    found = re.search(match, output.stdout + output.stderr)
    return found.group(0).strip() if found else "unknown"


def describe():
    """The facts about the machine and the versions, as (name, value)."""
    with open("/proc/cpuinfo") as file:
        model = re.search(r"model name\s*: (.+)", file.read())
    with open("/proc/meminfo") as file:
        memory = int(file.read().split()[1]) / 2**20
    commit = first_line("git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*")
    machine = f"{model.group(1) if model else os.uname().machine}, {os.cpu_count()} cores, {memory:.0f} GiB, Linux {os.uname().release}"
    return [
        ("date", time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())),
        ("machine", machine),
        ("Rockpool", f"commit {commit}, {first_line('swift', '--version', match='Swift version [^ ]+')}"),
        ("nginx", first_line("nginx", "-v", match=r"nginx/.+")),
        ("Squid", first_line("squid", "-v", match=r"Version .+")),
        ("Varnish", first_line("varnishd", "-V", match=r"varnish-[^ )]+")),
        ("wrk", first_line("wrk", "-v", match=r"debian/[^ ]+|wrk [^ ]+")),
    ]
