"""Real programs of the integrity run: curl, wget, aria2c and Python's requests, with complete, abandoned and resumed transfers."""

import asyncio
import contextlib
import importlib.util
import shutil
import tempfile
import time

from wholeorigin import SIZES

PATIENCE = 60.0
SEVERAL = ("curl", "curl --http2 --parallel")


class Program:
    """One program in its own directory. Its output is compared after it has ended."""

    def __init__(self, site, home):
        self.site, self.home, self.number = site, home, 0

    def file(self):
        self.number += 1
        return f"{self.home}/{self.number}"

    def place(self, door, listener, path):
        """(URL, the proxy or None)."""
        if door == "gateway":
            return f"http://127.0.0.1:{self.site.server.gateways[listener]}{path}", None
        return f"{self.site.nginx.origin(listener)}{path}", f"http://127.0.0.1:{self.site.server.proxy}"

    def draw(self, sizes, ways=("stored", "stored", "no-store", "chunked", "close-delimited"), doors=("gateway", "proxy", "tunnel")):
        """(door, listener, way, size, (name, path)) of a new target."""
        chance = self.site.chance
        door, size, way = chance.choice(doors), chance.choice(sizes), chance.choice(ways)
        listener = chance.choice({"gateway": ("plain", "tls", "h2"), "proxy": ("plain",), "tunnel": ("tls", "h2")}[door])
        return door, listener, way, size, self.site.fresh(size, way)

    async def run(self, *command, seconds=PATIENCE):
        """Returns the exit status, or None if the program was killed at its time limit."""
        process = await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL
        )
        try:
            return await asyncio.wait_for(process.wait(), seconds)
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
            return None

    def judge(self, program, drawn, file, status):
        door, listener, way, size, (name, path) = drawn
        body = self.site.read(file)
        where = (program, size, way, "program", door)
        words = f"{path} by {listener}, exit status {status}"
        # A program must not report an error for a correct body; of several bodies it only reports the last one's end.
        if status and self.site.files.fault(name, body) is None and program not in SEVERAL:
            self.site.tally.add("of another status", where, words)
        self.site.judge(where, words, name, 200, body)


class Curl(Program):
    def words(self, proxy):
        return ["curl", "-s", *(["-x", proxy, "--cacert", self.site.authority] if proxy else ["--noproxy", "*"])]

    async def several(self):
        """Fetches many bodies by one process: in sequence on one connection, or, decrypted with HTTP/2, all in parallel."""
        side = self.site.chance.random() < 0.5
        door, listener, *_ = self.draw(("1 KB",), doors=("tunnel",) if side else ("gateway", "proxy", "tunnel"))
        drawn, words = [], ["--http2", "--parallel", "--parallel-max", "16"] if side else ["--http1.1"]
        for _ in range(16 if side else 10):
            _, _, way, size, target = self.draw(("1 KB", "100 KB", "1 MB", "1 MB", "8 MB"))
            one, proxy = (door, listener, way, size, target), self.place(door, listener, target[1])[1]
            drawn.append((one, self.file()))
            words += [self.place(door, listener, target[1])[0], "-o", drawn[-1][1]]
        status = await self.run(*self.words(proxy), *words)
        for one, file in drawn:
            self.judge("curl --http2 --parallel" if side else "curl", one, file, status)

    async def given_up(self):
        """Abandons a transfer three times after some milliseconds, then completes it."""
        drawn, file = self.draw(("8 MB", "30 MB", "30 MB")), self.file()
        url, proxy = self.place(*drawn[:2], drawn[4][1])
        for _ in range(3):
            await self.run(*self.words(proxy), "--max-time", f"{self.site.chance.uniform(0.03, 0.08):.3f}", "-o", "/dev/null", url)
        self.judge("curl given up three times", drawn, file, await self.run(*self.words(proxy), "-o", file, url))

    async def resumed(self):
        """Interrupts a transfer three times, and resumes it each time."""
        drawn, file = self.draw(("8 MB", "30 MB"), ways=("stored", "no-store")), self.file()
        url, proxy = self.place(*drawn[:2], drawn[4][1])
        words = [*self.words(proxy), "-C", "-", "-o", file, url]
        for _ in range(3):
            await self.run(*words, "--limit-rate", "40M", "--max-time", "0.1")
        status = 0 if len(self.site.read(file)) == SIZES[drawn[3]][0] else await self.run(*words)
        self.judge("curl -C -", drawn, file, status)


class Wget(Program):
    async def resumed(self):
        drawn, file = self.draw(("8 MB", "30 MB"), ways=("stored", "no-store")), self.file()
        url, proxy = self.place(*drawn[:2], drawn[4][1])
        proxied = ["-e", "use_proxy=yes", "-e", f"http_proxy={proxy}", "-e", f"https_proxy={proxy}"] if proxy else ["--no-proxy"]
        words = ["wget", "-q", "-c", "--tries=1", f"--ca-certificate={self.site.authority}", *proxied, "-O", file, url]
        for _ in range(3):
            await self.run(*words, "--limit-rate=40m", seconds=0.12)
        self.judge("wget -c", drawn, file, await self.run(*words))


class Aria(Program):
    async def ranges(self):
        """A download with eight connections; the same one directly from the origin shows the bytes that aria2c fetches twice by itself."""
        for _ in range(2):
            drawn, file = self.draw(("8 MB", "8 MB", "30 MB"), ways=("stored",)), self.file()
            url, proxy = self.place(*drawn[:2], drawn[4][1])
            self.site.downloads["aria2c"][drawn[4][1]] = SIZES[drawn[3]][0]
            status = await self.load(url, file, self.site.authority, proxy)
            # aria2c allocates the full length before it has all bytes.
            if status == 0:
                self.judge("aria2c -x8", drawn, file, status)
            else:
                self.site.tally.add("short", ("aria2c -x8", drawn[3], drawn[2], "program", drawn[0]), f"{drawn[4][1]}: gave up, {status}")
            _, path = self.site.fresh(drawn[3], "stored")
            self.site.downloads["alone"][path] = SIZES[drawn[3]][0]
            await self.load(self.site.nginx.origin(drawn[1]) + path, self.file(), self.site.nginx.ca, None)

    async def load(self, url, file, authority, proxy):
        return await self.run(
            "aria2c",
            "-q",
            "-x8",
            "-s8",
            "-k1M",
            "--max-tries=1",
            "--file-allocation=none",
            "--no-conf",
            f"--ca-certificate={authority}",
            f"--all-proxy={proxy}" if proxy else "--no-proxy=*",
            "-d",
            self.home,
            "-o",
            file.rsplit("/", 1)[1],
            url,
        )


class Requests(Program):
    async def session(self):
        """Fetches ten bodies on the connections of one session."""
        for drawn, status, body, words in await asyncio.to_thread(self.work):
            where = ("requests", drawn[3], drawn[2], "program", drawn[0])
            self.site.judge(where, f"{drawn[4][1]} by {drawn[1]}{words}", drawn[4][0], status, body)

    def work(self):
        import requests

        found = []
        with requests.Session() as session:
            session.trust_env, session.verify = False, self.site.authority
            for _ in range(10):
                drawn = self.draw(("1 KB", "100 KB", "1 MB", "8 MB"), ways=("stored", "no-store", "chunked", "close-delimited", "gzip"))
                url, proxy = self.place(*drawn[:2], drawn[4][1])
                session.proxies = {"http": proxy, "https": proxy} if proxy else {}
                try:
                    answer = session.get(url, timeout=PATIENCE)
                    found.append((drawn, answer.status_code, answer.content, ""))
                except requests.RequestException as error:
                    found.append((drawn, 200, b"", f" ({error!r:.120})"))
        return found


async def programs(site, end):
    """Runs all available programs in turns, three at once; returns their names."""
    with tempfile.TemporaryDirectory(prefix="rpf-programs-") as home:
        turns, used = [], []
        for name, kind, *methods in (
            ("curl", Curl, "several", "given_up", "resumed"),
            ("wget", Wget, "resumed"),
            ("aria2c", Aria, "ranges"),
            ("requests", Requests, "session"),
        ):
            if shutil.which(name) or name == "requests" and importlib.util.find_spec(name):
                used.append(name)
                turns += [(kind, method) for method in methods]

        async def work(number):
            for step in range(number, 1 << 30, 3):
                if step >= 2 * len(turns) and time.monotonic() > end:
                    return
                kind, method = turns[step % len(turns)]
                with tempfile.TemporaryDirectory(dir=home) as own:
                    await getattr(kind(site, own), method)()

        if turns:
            await asyncio.gather(*(work(number) for number in range(3)))
    site.tally.tell("programs")
    return ", ".join(["clients of our own", *used])
