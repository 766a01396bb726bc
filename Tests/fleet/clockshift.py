"""S11: the faults of gateways whose wall clocks are ten minutes ahead and behind."""

import glob
import shutil
import subprocess
import tempfile

# With the library for timers of the fault runs of one gateway.
from clocks import TIMERS
from fleet import discard
from holding import Failed
from scenarios import killed, partitioned, stopped

SHIFT = 600


def clocks_apart(given):
    """S11: the clocks of the gateways are ten minutes ahead and behind: S1, S2 and S3 hold."""
    library = next(iter(glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1")), None)
    if library is None or not shutil.which("cc"):
        return "skipped: needs faketime and cc"
    home = tempfile.mkdtemp(prefix="rp-clock-")
    try:
        subprocess.run(["cc", "-shared", "-fPIC", "-O", "-x", "c", "-o", f"{home}/timers.so", "-"], input=TIMERS.encode(), check=True)
        commands = {name: shifted(seconds, home, library) for name, seconds in {"a": SHIFT, "b": -SHIFT}.items()}
        said = []
        for scenario in (killed, stopped, partitioned):
            name = scenario.__doc__.split(":")[0]
            try:
                said.append(f"{name} {scenario(given, commands=commands)}")
            except Failed as failure:
                raise Failed(f"{name}: {failure}") from None
            discard()
        return "; ".join(said)
    finally:
        shutil.rmtree(home, ignore_errors=True)


def shifted(seconds, home, library):
    """The words before a command whose wall clock is to be wrong; `nice` absorbs what the library changes in its environment."""
    return [
        "env",
        f"LD_PRELOAD={home}/timers.so:{library}",
        f"FAKETIME={seconds:+d}s",
        "FAKETIME_DONT_FAKE_MONOTONIC=1",
        "nice",
        "-n",
        "0",
    ]
