#!/usr/bin/env python3
"""Runs random sequences of rclone and aws through Rockpool over a line that comes and goes.

    Tests/programs/flapping.py [--program rclone|aws] [--sequences 200] [--seed 1] [--binary .build/release/rockpool] [--python PYTHON]

A step that its program reports as done must be at the server in the end, and a step that it reports as failed must never be: after every
sequence the server's files are those of the successful steps. PYTHON is one that has wsgidav, moto and cheroot, as that of `make programs`.
"""

import argparse
import json
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

STEPS = 12


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class World:
    """A server program and Rockpool before it."""

    def __init__(self, binary, directory, command, upstream):
        self.directory = directory
        self.port, self.gateway, self.proxy, self.admin = free_ports(4)
        self.server = subprocess.Popen(command(self), cwd=directory, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.wait(f"http://127.0.0.1:{self.port}/")
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
        with urllib.request.urlopen(request, timeout=10) as reply:
            return json.load(reply)

    def turn(self, mode):
        self.call("PUT", "/v1/network", {"mode": mode})

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
        return run.returncode == 0, run.stdout

    def end(self):
        for process in (self.rockpool, self.server):
            process.kill()
            process.wait()


class Rclone:
    """Files of a WebDAV share."""

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

    def begin(self, world):
        self.rclone(world, world.gateway, "lsf", "-R", ":webdav:")

    def put(self, world, name, text):
        with open(world.directory + "/given", "w", encoding="utf-8") as file:
            file.write(text)
        return self.rclone(world, world.gateway, "copyto", "--ignore-times", "given", ":webdav:" + name)[0]

    def delete(self, world, name):
        return self.rclone(world, world.gateway, "deletefile", ":webdav:" + name)[0]

    def move(self, world, name, other):
        return self.rclone(world, world.gateway, "moveto", ":webdav:" + name, ":webdav:" + other)[0]

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
        return world.run("aws", "--endpoint-url", f"http://127.0.0.1:{port}", *words, environment=self.environment)

    def begin(self, world):
        self.aws(world, world.gateway, "s3", "mb", "s3://bucket")

    def put(self, world, name, text):
        with open(world.directory + "/given", "w", encoding="utf-8") as file:
            file.write(text)
        return self.aws(world, world.gateway, "s3", "cp", "given", "s3://bucket/" + name)[0]

    def delete(self, world, name):
        return self.aws(world, world.gateway, "s3", "rm", "s3://bucket/" + name)[0]

    def state(self, world):
        _, listed = self.aws(world, world.port, "s3api", "list-objects-v2", "--bucket", "bucket", "--output", "json")
        names = [item["Key"] for item in json.loads(listed or b"{}").get("Contents", [])]
        read = {}
        for name in names:
            _, text = self.aws(world, world.port, "s3", "cp", "s3://bucket/" + name, "-")
            read[name] = text.decode()
        return read


PROGRAMS = {"rclone": Rclone, "aws": Aws}


def sequence(program, world, seed):
    """Runs one sequence on an empty share; returns what went wrong."""
    chance = random.Random(seed)
    expected = program.state(world)
    away = False
    lines = []
    for number in range(STEPS):
        if chance.random() < 0.35:
            away = not away
            world.turn("offline" if away else "auto")
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
        else:
            other = chance.choice([one for one in ("e", "dir/f", "a") if one != name])
            done = program.move(world, name, other)
            if done and name in expected:
                expected[other] = expected.pop(name)
        lines.append(f"{'away' if away else 'here'} {step} {name}: {'done' if done else 'failed'}")
    stuck = world.settle()
    found = program.state(world)
    if found == expected and not stuck:
        return []
    stuck = [f"{row['state']} {row['method']} {row['url']} {row['lastError']}" for row in stuck]
    return [f"seed {seed}", *lines, f"expected {expected}", f"found    {found}", *stuck]


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
            program.begin(world)
            for seed in range(options.seed, options.seed + options.sequences):
                wrong = sequence(program, world, seed)
                if wrong:
                    failures += 1
                    print(f"{name}:", *wrong, sep="\n  ", flush=True)
                    break
            else:
                print(f"{name}: {options.sequences} sequences of {STEPS} steps, nothing lost, nothing late")
        finally:
            world.end()
            shutil.rmtree(directory, ignore_errors=True)
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
