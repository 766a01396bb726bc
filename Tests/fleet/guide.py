"""The commands of docs/guide/fleet.md, run from the page, in order, as an ordinary user: what its comments promise must hold."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from holding import Failed

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/guide/fleet.md"
# The directory of the page; the test uses another, so that nothing that is left over matters.
PLACE = "/tmp/fleet-trial"
MARK = "@@ "
END = """
trap 'set +e; kill $(jobs -p) 2> /dev/null; for n in 1 2; do pg_ctl -D db$n -m immediate stop > /dev/null 2>&1; done; wait' EXIT
"""


def rows(output, state):
    """The names in the lines of a table that have this state."""
    return [line.split()[0] for line in output.splitlines() if state in line.split()]


# What each comment of the page promises of the output of its command.
PROMISES = {
    "shop-1 and shop-2: live": lambda output: rows(output, "live") == ["shop-1", "shop-2"],
    "202": lambda output: output.strip() == "202",
    "one write, pending": lambda output: len(rows(output, "pending")) == 1 and "/notes/1" in output,
    "delivered": lambda output: len(rows(output, "delivered")) == 1 and "/notes/1" in output,
    "written at shop-1": lambda output: "written at shop-1" in output,
    "200": lambda output: output.strip() == "200",
    "says what an acknowledged write survives now": lambda output: "lost with the database's host" in output,
}


def commands():
    """The lines of the page's code, each with a comment after a mark of its own."""
    lines = [line[4:] for line in PAGE.read_text().splitlines() if line.startswith("    ")]
    for line in lines:
        command, _, comment = line.partition("   # ")
        if not comment:
            command, _, comment = line.partition("  # ")
        if comment.strip():
            yield f"echo '{MARK}{comment.strip()}'\n{command.rstrip()}\necho '{MARK}'"
        else:
            yield line


def guide(given):
    """guide: the commands of the guide set up two gateways, of which one dies, and then the database's host."""
    home = Path(tempfile.mkdtemp(prefix="rp-guide-"))
    try:
        # The user of PostgreSQL may not read the checkout.
        shutil.copy(given.binary, home / "rockpool")
        subprocess.run(["chmod", "-R", "a+rX", home], check=True)
        script = f"set -e\nPATH={home}:$PATH\n{END}\n" + "\n".join(commands()).replace(PLACE, f"{home}/trial")
        return judged(run(script, home), script)
    finally:
        shutil.rmtree(home, ignore_errors=True)


def run(script, home):
    words = ["bash", "-c", script]
    if os.geteuid() == 0:
        # PostgreSQL does not run as root. In a network of its own the ports of the page are free.
        shutil.chown(home, "postgres")
        words = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", *words]
        words = ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh", *words]
    environment = {**os.environ, "HOME": str(home), "SWIFT_BACKTRACE": "enable=no"}
    return subprocess.run(words, cwd=home, env=environment, capture_output=True, text=True, timeout=180)


def judged(run, script):
    if run.returncode != 0:
        raise Failed(f"a command failed with {run.returncode}:\n{run.stdout}\n{run.stderr[-2000:]}")
    kept, checked = run.stdout.split(MARK), 0
    for part in kept[1:]:
        comment, _, output = part.partition("\n")
        if not comment:
            continue
        if comment not in PROMISES:
            raise Failed(f"no check of {comment!r}: add it to PROMISES")
        if not PROMISES[comment](output):
            raise Failed(f"not {comment!r}:\n{output}")
        checked += 1
    if left := [comment for comment in PROMISES if f"{MARK}{comment}'" not in script]:
        raise Failed(f"the page does not promise any more: {left}")
    return f"{checked} promises of the page hold"
