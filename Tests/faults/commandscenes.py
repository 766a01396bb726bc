"""Commands that change files while the disk fails."""

import asyncio
import json
import os
import subprocess

from cachescenes import Compact
from scene import Scene


class Command(Scene):
    """A command instead of a server."""

    @staticmethod
    def call(bench, *words, environment=None):
        """Returns the command's JSON output; empty if it failed."""
        done = subprocess.run(
            [bench.server.binary, *words, "--config", bench.root / "rockpool.yaml", "--format", "json"],
            env={**os.environ, "SWIFT_BACKTRACE": "enable=no", **(environment or {})},
            capture_output=True,
            timeout=20,
        )
        if done.returncode < 0 and not (done.returncode == -9 and bench.disk.block.faults):
            bench.bad.append(f"{' '.join(words)} died of signal {-done.returncode}")
        return json.loads(done.stdout) if done.returncode == 0 else {}


class Rotate(Command):
    """`rockpool ca init` and `ca rotate`: the authority is complete, and is the last one reported."""

    name = "rotate"

    async def run(self, bench, environment, arm):
        arm()
        for verb in ("init", "rotate"):
            bench.promises["asked to " + verb] = None, bench.disk.count
            report = await asyncio.to_thread(self.call, bench, "ca", verb, environment=environment)
            if report:
                bench.promises[verb] = report["fingerprint"], bench.disk.count

    def judge(self, bench):
        last = "rotate" if "asked to rotate" in bench.promises else "init"
        found = self.call(bench, "ca", "init").get("fingerprint")
        if found is None or found != bench.promises.get(last, [found])[0]:
            bench.bad.append(f"the authority is {found}, promised: {bench.promises}")


class StoppedCleanup(Command):
    """`rockpool storage-cleanup` on the stores of a stopped server."""

    name, golden = "stopped cleanup", "loose"
    prepare = Compact.prepare

    async def run(self, bench, environment, arm):
        arm()
        await asyncio.to_thread(self.call, bench, "storage-cleanup", "--aggressive", "--vacuum", environment=environment)
