#!/usr/bin/env python3
"""Runs random sequences of aws, git, gql and rclone through Rockpool over a line that comes and goes; git also where fetches are kept.

    Tests/programs/flapping.py [--program NAME] [--sequences 200] [--seed 1] [--binary .build/release/rockpool] [--python PYTHON]

A step that its program reports as done must be at the server in the end, and a step that it reports as failed must never be: after every
sequence the server's state is that of the successful steps. The line is cut by Rockpool's switch or, where its data outlives it, by the end
of the server program. PYTHON is one that has cheroot, gql, graphql-core, moto and wsgidav, as that of `make programs`; awscli is taken from
it or from the Python that runs this script.
"""

import argparse
import collections
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

from place import free_ports

STEPS = 12
COUNTS = collections.Counter()
HERE = os.path.dirname(os.path.abspath(__file__))


class World:
    """A server program and Rockpool before it."""

    def __init__(self, binary, directory, command, upstream):
        self.directory, self.said = directory, ""
        self.port, self.gateway, self.proxy, self.admin = free_ports(4)
        self.line = command(self)
        self.up()
        listen = {"listen": f"127.0.0.1:{self.proxy}"}
        declared = {
            "name": "u",
            "origin": f"http://127.0.0.1:{self.port}",
            "gateway": f"127.0.0.1:{self.gateway}",
            **upstream,
        }
        storage = {"cache_dir": directory + "/cache", "state_dir": directory + "/state", "min_free": "1 MB"}
        admin = {"listen": f"127.0.0.1:{self.admin}"}
        with open(directory + "/rockpool.yaml", "w", encoding="utf-8") as file:
            json.dump({"proxy": listen, "admin": admin, "storage": storage, "upstreams": [declared]}, file)
        self.rockpool = subprocess.Popen(
            [binary, "serve", "--config", directory + "/rockpool.yaml"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self.rockpool.stdout.readline()

    def up(self):
        self.server = subprocess.Popen(self.line, cwd=self.directory, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.wait(f"http://127.0.0.1:{self.port}/")

    def down(self):
        """Ends the server program while nothing is under way."""
        self.turn("offline")
        self.server.kill()
        self.server.wait()
        self.turn("auto")

    @staticmethod
    def wait(url):
        for _ in range(300):
            try:
                urllib.request.urlopen(url, timeout=2)
                return
            except urllib.error.HTTPError:
                return
            except OSError:
                time.sleep(0.1)
        raise SystemExit("the server program does not start")

    def call(self, method, path, body=None):
        with open(self.directory + "/state/admin-token", encoding="utf-8") as file:
            fields = {"Authorization": "Bearer " + file.read().strip(), "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.admin}{path}", data, fields, method=method)
        with urllib.request.urlopen(request, timeout=30) as reply:
            return json.load(reply)

    def turn(self, mode):
        self.call("PUT", "/v1/network", {"mode": mode})

    def exchanges(self, count=40):
        """The last exchanges with Rockpool and deliveries by it, the oldest first."""
        items = self.call("GET", f"/v1/requests?limit={count}")["items"]
        return [f"{one['at']} {one['status']} {one['verdict']} {one['method']} {one['url']}" for one in reversed(items)]

    def settle(self):
        """Waits until nothing is open; returns the operations that cannot be delivered."""
        self.turn("auto")
        for _ in range(300):
            rows = self.call("GET", "/v1/operations")["items"]
            if not rows or all(row["state"] in ("dead", "conflicted") for row in rows):
                return rows
            time.sleep(0.1)
        return rows

    def run(self, *command, environment=None):
        run = subprocess.run(command, cwd=self.directory, capture_output=True, env={**os.environ, **(environment or {})}, timeout=60)
        # What a failed program says is part of a broken sequence's story.
        self.said = "" if run.returncode == 0 else run.stderr.decode(errors="replace").strip()[-600:]
        return run.returncode == 0, run.stdout

    def end(self):
        for process in (self.rockpool, self.server):
            process.kill()
            process.wait()


class Client:
    """A client program that stays, because it is slow to start (steps.py)."""

    def __init__(self, python, *words, environment=None):
        self.process = subprocess.Popen(
            [python, HERE + "/steps.py", *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **(environment or {})},
        )

    def run(self, *words):
        self.process.stdin.write(json.dumps(words) + "\n")
        self.process.stdin.flush()
        status, output = json.loads(self.process.stdout.readline())
        return status == 0, output

    def end(self):
        self.process.stdin.close()
        self.process.wait()


class Rclone:
    """Files of a WebDAV share."""

    restarts = True

    upstream = {"routes": [{"match": f"{name} /**", "cache": "body"} for name in ("PROPFIND", "REPORT", "OPTIONS")]}
    steps = ("put", "put", "delete", "move")

    @staticmethod
    def command(python):
        def line(world):
            os.makedirs(world.directory + "/files")
            start = "from wsgidav.server.server_cli import run; run()"
            place = ["--host", "127.0.0.1", "--port", str(world.port), "--root", world.directory + "/files"]
            return [python, "-c", start, *place, "--auth", "anonymous", "--server", "cheroot"]

        return line

    def rclone(self, world, port, *words):
        options = ["--config", "/dev/null", "--webdav-url", f"http://127.0.0.1:{port}/", "--webdav-vendor", "other"]
        return world.run("rclone", *options, "--retries", "1", "--low-level-retries", "1", *words)

    def begin(self, world, python):
        self.rclone(world, world.gateway, "lsf", "-R", ":webdav:")

    def end(self):
        pass

    def put(self, world, name, text):
        with open(world.directory + "/given", "w", encoding="utf-8") as file:
            file.write(text)
        return self.rclone(world, world.gateway, "copyto", "--ignore-times", "given", ":webdav:" + name)[0]

    def delete(self, world, name):
        return self.rclone(world, world.gateway, "deletefile", ":webdav:" + name)[0]

    def move(self, world, name, other):
        return self.rclone(world, world.gateway, "moveto", "--ignore-times", ":webdav:" + name, ":webdav:" + other)[0]

    def state(self, world):
        found = {}
        root = world.directory + "/files"
        for folder, _, names in os.walk(root):
            for name in names:
                path = os.path.join(folder, name)
                with open(path, encoding="utf-8") as file:
                    found[os.path.relpath(path, root)] = file.read()
        return found


class Aws:
    """Objects of a bucket."""

    restarts = False
    upstream = {"routes": [{"match": "/bucket/**", "kind": "s3"}, {"match": "/bucket", "kind": "s3"}]}
    steps = ("put", "put", "delete")
    environment = {
        "AWS_ACCESS_KEY_ID": "AK",
        "AWS_SECRET_ACCESS_KEY": "SK",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_MAX_ATTEMPTS": "1",
    }

    @staticmethod
    def command(python):
        return lambda world: [python, "-m", "moto.server", "-p", str(world.port)]

    def aws(self, world, port, *words):
        return self.client.run("--endpoint-url", f"http://127.0.0.1:{port}", *words)

    def begin(self, world, python):
        probe = [python, "-c", "import awscli"]
        own = subprocess.run(probe, capture_output=True).returncode == 0
        self.client = Client(python if own else sys.executable, "aws", environment=self.environment)
        self.aws(world, world.gateway, "s3", "mb", "s3://bucket")

    def end(self):
        self.client.end()

    def put(self, world, name, text):
        with open(world.directory + "/given", "w", encoding="utf-8") as file:
            file.write(text)
        return self.aws(world, world.gateway, "s3", "cp", world.directory + "/given", "s3://bucket/" + name)[0]

    def delete(self, world, name):
        return self.aws(world, world.gateway, "s3", "rm", "s3://bucket/" + name)[0]

    def state(self, world):
        _, listed = self.aws(world, world.port, "s3api", "list-objects-v2", "--bucket", "bucket", "--output", "json")
        names = [item["Key"] for item in json.loads(listed or "{}").get("Contents", [])]
        return {name: self.aws(world, world.port, "s3", "cp", "s3://bucket/" + name, "-")[1] for name in names}


class Git:
    """Files on the main branch of a repository: a push is done or has failed, and nothing of it comes later."""

    restarts = True
    upstream = {}
    steps = ("put", "put", "delete", "fetch")

    @staticmethod
    def command(python):
        def line(world):
            subprocess.run(["git", "init", "-q", "--bare", "-b", "main", world.directory + "/pool.git"], check=True)
            subprocess.run(["git", "-C", world.directory + "/pool.git", "config", "http.receivepack", "true"], check=True)
            return [python, HERE + "/git_server.py", str(world.port)]

        return line

    def git(self, world, *words):
        who = {"NAME": "a", "EMAIL": "a@example.com"}
        environment = {f"GIT_{role}_{what}": text for role in ("AUTHOR", "COMMITTER") for what, text in who.items()}
        own = {"HOME": world.directory, "GIT_CONFIG_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0"}
        return world.run("git", *words, environment={**environment, **own})

    def begin(self, world, python):
        self.git(world, "clone", "-q", f"http://127.0.0.1:{world.gateway}/pool.git", "work")
        self.git(world, "-C", "work", "commit", "-q", "--allow-empty", "-m", "first")
        self.git(world, "-C", "work", "push", "-q", "origin", "HEAD:main")

    def end(self):
        pass

    def push(self, world):
        """Commits everything and pushes it; what could not be pushed is given up, as its user would who starts again."""
        self.git(world, "-C", "work", "add", "-A")
        self.git(world, "-C", "work", "commit", "-q", "--allow-empty", "-m", "step")
        done = self.git(world, "-C", "work", "push", "-q", "origin", "HEAD:main")[0]
        if not done:
            self.git(world, "-C", "work", "reset", "-q", "--hard", "HEAD~1")
        return done

    def put(self, world, name, text):
        path = os.path.join(world.directory, "work", name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return self.push(world)

    def delete(self, world, name):
        path = os.path.join(world.directory, "work", name)
        if os.path.exists(path):
            os.remove(path)
        return self.push(world)

    def fetch(self, world, name):
        """A fetch that is reported as done has brought the server's commit."""
        done = self.git(world, "-C", "work", "fetch", "-q", "origin", "main")[0]
        fetched, held = (self.git(world, "-C", where, "rev-parse", ref)[1] for where, ref in (("work", "FETCH_HEAD"), ("pool.git", "main")))
        if done and fetched != held:
            raise SystemExit(f"fetched {fetched}, the server has {held}")
        return done

    def expect(self, holds, what):
        if not holds:
            raise SystemExit(what)

    def state(self, world):
        _, names = self.git(world, "-C", "pool.git", "ls-tree", "-r", "--name-only", "main")
        return {name: self.git(world, "-C", "pool.git", "show", "main:" + name)[1].decode() for name in names.decode().split()}


class KeptGit(Git):
    """The same with `kind: git`: a clone or a fetch that is done has brought a state of the server, whole; online, its last one."""

    upstream = {"routes": [{"match": "/pool.git/**", "kind": "git"}]}
    steps = ("put", "put", "fetch", "clone", "follow", "shallow")

    def begin(self, world, python):
        super().begin(world, python)
        self.git(world, "clone", "-q", f"http://127.0.0.1:{world.gateway}/pool.git", "other")

    def commits(self, world):
        return self.git(world, "-C", "pool.git", "rev-list", "main")[1].split()

    def judge(self, world, where, ref):
        known, found = self.commits(world), self.git(world, "-C", where, "rev-parse", ref)[1].strip()
        self.expect(found in known, f"{where} has {found}, which the server never had")
        self.expect(world.away or found == known[0], f"{where} has {found}, the server has {known[0]}")
        self.expect(self.git(world, "-C", where, "fsck", "--full", "--strict")[0], f"{where} is not whole: {world.said}")

    def fetch(self, world, name, where="work"):
        done = self.git(world, "-C", where, "fetch", "-q", "origin", "main")[0]
        if done:
            self.judge(world, where, "FETCH_HEAD")
        return done

    def follow(self, world, name):
        """A client that only fetches."""
        return self.fetch(world, name, "other")

    def clone(self, world, name, *options):
        done = self.git(world, "clone", "-q", *options, f"http://127.0.0.1:{world.gateway}/pool.git", "new")[0]
        if done:
            self.judge(world, "new", "HEAD")
        shutil.rmtree(world.directory + "/new", ignore_errors=True)
        return done

    def shallow(self, world, name):
        return self.clone(world, name, "--depth", "1")


class Gql:
    """Notes of a GraphQL server; an addition that arrives twice makes two notes."""

    restarts = True
    upstream = {
        "routes": [{"match": "POST /graphql", "kind": "graphql", "lane": "/id", "offline_response": "optimistic"}],
        "idempotency": {"honoured": "yes", "max_processing": "1s"},
    }
    steps = ("put", "put", "delete", "add", "list")

    @staticmethod
    def command(python):
        return lambda world: [python, HERE + "/graphql_server.py", str(world.port)]

    def begin(self, world, python):
        self.client = Client(python, "gql", f"http://127.0.0.1:{world.gateway}/graphql")
        self.list(world, "")

    def end(self):
        self.client.end()

    def put(self, world, name, text):
        document = "mutation Put($id: ID!, $text: String!) { put(id: $id, text: $text) { id text } }"
        done, said = self.client.run(document, {"id": name, "text": text})
        if done and json.loads(said)["put"] != {"id": name, "text": text}:
            raise SystemExit(f"a note that was put reads {said}")
        return done

    def delete(self, world, name):
        return self.client.run("mutation Remove($id: ID!) { remove(id: $id) }", {"id": name})[0]

    def add(self, world, name, text):
        return self.client.run("mutation Add($text: String!) { add(text: $text) { text } }", {"text": text})[0]

    def list(self, world, name):
        return self.client.run("query Notes { notes { id text } }", None)[0]

    def state(self, world):
        try:
            with open(world.directory + "/notes.json", encoding="utf-8") as file:
                rows, _ = json.load(file)
        except FileNotFoundError:
            return {}
        # The number of an added note is the server's own; its text is unique.
        found = {}
        for key, text in rows:
            name = text if key.startswith("n") else key
            found[name] = "twice" if name in found else text
        return found


PROGRAMS = {"aws": Aws, "git": Git, "gql": Gql, "kept-git": KeptGit, "rclone": Rclone}


def sequence(program, world, seed):
    """Runs one sequence on an empty share; returns what went wrong."""
    chance = random.Random(seed)
    expected = program.state(world)
    away = None
    lines = []
    for number in range(STEPS):
        if chance.random() < 0.35:
            if away == "down":
                world.up()
            elif away:
                world.turn("auto")
            away = None if away else chance.choice(("down", "off") if program.restarts else ("off",))
            if away == "down":
                world.down()
            elif away:
                world.turn("offline")
        world.away = away
        step = chance.choice(program.steps)
        name = chance.choice(("a", "b", "dir/c", "dir/d"))
        if step == "put":
            text = f"{seed}-{number}"
            done = program.put(world, name, text)
            if done:
                expected[name] = text
        elif step == "delete":
            done = program.delete(world, name)
            if done:
                expected.pop(name, None)
        elif step == "add":
            text = f"{seed}-{number}"
            done = program.add(world, name, text)
            if done:
                expected[text] = text
        elif step in ("fetch", "list", "clone", "follow", "shallow"):
            done = getattr(program, step)(world, name)
        else:
            other = chance.choice([one for one in ("e", "dir/f", "a") if one != name])
            done = program.move(world, name, other)
            step = f"move to {other}"
            if done and name in expected:
                expected[other] = expected.pop(name)
        COUNTS[(step.split()[0], "away" if away else "here", done)] += 1
        lines.append(f"{away or 'here'} {step} {name}: {'done' if done else 'failed ' + world.said}")
    if away == "down":
        world.up()
    stuck = world.settle()
    found = program.state(world)
    if found == expected and not stuck:
        return []
    stuck = [f"{row['state']} {row['method']} {row['url']} {row['lastError']}" for row in stuck]
    names = sorted(name for name in {**expected, **found} if expected.get(name) != found.get(name))
    differences = [f"{name}: expected {expected.get(name)}, found {found.get(name)}" for name in names]
    return [f"seed {seed}", *lines, *differences, *stuck, *world.exchanges()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", choices=sorted(PROGRAMS), action="append")
    parser.add_argument("--sequences", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--binary", default=".build/release/rockpool")
    parser.add_argument("--python", default=".build/programs/bin/python")
    options = parser.parse_args()
    failures = 0
    for name in options.program or sorted(PROGRAMS):
        program = PROGRAMS[name]()
        directory = tempfile.mkdtemp()
        binary, python = os.path.abspath(options.binary), os.path.abspath(options.python)
        world = World(binary, directory, program.command(python), program.upstream)
        try:
            program.begin(world, python)
            COUNTS.clear()
            for seed in range(options.seed, options.seed + options.sequences):
                wrong = sequence(program, world, seed)
                if wrong:
                    failures += 1
                    print(f"{name}:", *wrong, sep="\n  ", flush=True)
                    break
            else:
                counts = [f"{where} {step} {'done' if done else 'failed'} {count}" for (step, where, done), count in sorted(COUNTS.items())]
                print(f"{name}: {options.sequences} sequences of {STEPS} steps, nothing lost, nothing late:", ", ".join(counts), flush=True)
            program.end()
        finally:
            world.end()
            shutil.rmtree(directory, ignore_errors=True)
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
