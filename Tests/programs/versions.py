"""Programs that read repositories and registries, and write to them: hg, svn, git with SHA-256, skopeo."""

import hashlib
import json
import os
import sys

from place import HERE, found, free_ports, scene
from reads import holds, tree


@scene("hg")
def hg(place):
    """A clone of what was cloned before is there away; a push fails there, and nothing of it arrives later."""
    own = {"HGUSER": "a", "HGPLAIN": "1"}

    def run(*words):
        return place.run(found("hg"), *words, environment=own)

    def commit(text, where="pool"):
        place.write(where + "/tide", f"low water {text}\n" * 99)
        status, said = run("-R", where, "commit", "-A", "-q", "-m", text, "-d", "1700000000 0")
        place.check(status == 0, "a commit: " + said[-300:])

    def read(url, into):
        status, said = run("clone", "-q", url, into)
        if status == 0:
            status, said = run("-R", into, "verify", "-q")
        return (run("-R", into, "log", "-T", "{node} {phase} {bookmarks}\n"), tree(into, "tide")) if status == 0 else said

    def change():
        run("-R", "pool", "bookmark", "-q", "spring")
        commit("two")

    def refused(url):
        run("clone", "-q", place.url, "own")
        commit("own", "own")
        return run("-R", "own", "push", "-q", url)[0] != 0

    (port,) = free_ports(1)
    run("init", "pool")
    commit("one")
    options = ["--config", "web.push_ssl=false", "--config", "web.allow-push=*", "-a", "127.0.0.1", "-p", str(port)]
    place.start(found("hg"), "serve", "-R", "pool", *options, ready=f"http://127.0.0.1:{port}/")
    holds(place, port, read, change, {"routes": [{"match": "/**", "store": "always"}]}, refused=refused)
    # A pull asks at the same URL as a clone, and gets what its client lacks.
    run("clone", "-q", place.url, "old")
    commit("three")
    place.check(run("-R", "old", "pull", "-q")[0] == 0, "back, a pull")
    place.away()
    for name in ("late", "later"):
        said = read(place.url, place.directory + "/" + name)
        place.check(not isinstance(said, str), f"away, a clone after the pull of another: {said}")


SUBVERSION = """
ServerName localhost
Listen 127.0.0.1:{port}
PidFile {root}/apache.pid
ErrorLog {root}/apache.error
Mutex file:{root}
LoadModule mpm_prefork_module {modules}/mod_mpm_prefork.so
LoadModule authz_core_module {modules}/mod_authz_core.so
LoadModule dav_module {modules}/mod_dav.so
LoadModule dav_svn_module {modules}/mod_dav_svn.so
StartServers 2
<Location /pool>
  DAV svn
  SVNPath {root}/pool
</Location>
"""
MODULES = "/usr/lib/apache2/modules"


@scene("svn", "svnadmin", "apache2", file=MODULES + "/mod_dav_svn.so")
def svn(place):
    """A checkout away is what was checked out before, or fails; a commit fails there, and nothing of it arrives later."""

    def run(*words):
        return place.run(found("svn"), "--non-interactive", *words)

    def read(url, into):
        status, said = run("checkout", "-q", url + "/pool", into)
        return (run("info", "--show-item", "revision", into), tree(into, ".txt")) if status == 0 else said

    def commit(text):
        place.write("work/tide.txt", f"low water {text}\n" * 99)
        run("add", "-q", "--force", "work/tide.txt")
        status, said = run("commit", "-q", "-m", text, "work")
        place.check(status == 0, "a commit: " + said[-300:])

    def refused(url):
        run("checkout", "-q", url + "/pool", "own")
        place.write("own/tide.txt", "own\n")
        return run("commit", "-q", "-m", "own", "own")[0] != 0

    (port,) = free_ports(1)
    place.run(found("svnadmin"), "create", "pool")
    place.write("apache.conf", SUBVERSION.format(port=port, root=place.directory, modules=MODULES))
    # Started by root, it would serve as nobody.
    own = {**os.environ, "APACHE_RUN_USER": "root"}
    place.run("chmod", "-R", "a+rwX", place.directory)
    place.start(found("apache2"), "-f", place.directory + "/apache.conf", "-X", ready=f"http://127.0.0.1:{port}/pool/", env=own)
    status, said = run("checkout", "-q", f"http://127.0.0.1:{port}/pool", "work")
    place.check(status == 0, "a checkout: " + said[-300:])
    commit("one")
    # svn writes the attributes of its questions in an order of each run's own: whether one was asked before is chance.
    routes = [{"match": f"{method} /pool/**", "cache": "body"} for method in ("OPTIONS", "PROPFIND", "REPORT")]
    routes += [{"match": "OPTIONS /pool", "cache": "body"}, {"match": "PROPFIND /pool", "cache": "body"}]
    holds(place, port, read, lambda: commit("two"), {"routes": routes}, refused=refused, is_sure=False)


@scene("git")
def git_sha256(place):
    """Repositories whose objects are named by SHA-256 are kept as others are."""
    who = {f"GIT_{role}_{what}": text for role in ("AUTHOR", "COMMITTER") for what, text in (("NAME", "a"), ("EMAIL", "a@example.com"))}

    def git(*words):
        return place.run("git", *words, environment={**who, "GIT_CONFIG_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0"})

    def commit(text):
        place.write("work/tide", f"low water {text}\n" * 99)
        git("-C", "work", "add", ".")
        git("-C", "work", "commit", "-q", "-m", text)
        return git("-C", "work", "push", "-q", "origin", "HEAD:main")

    def read(url, into):
        status, said = git("clone", "-q", url + "/pool.git", into)
        if status == 0:
            status, said = git("-C", into, "fsck", "--full", "--strict")
        return git("-C", into, "rev-list", "--objects", "--all")[1].splitlines() if status == 0 else said

    def refused(url):
        git("clone", "-q", url + "/pool.git", "own")
        git("-C", "own", "commit", "-q", "--allow-empty", "-m", "own")
        return git("-C", "own", "push", "-q", "origin", "HEAD:main")[0] != 0

    git("init", "-q", "--bare", "--object-format=sha256", "-b", "main", "pool.git")
    git("-C", "pool.git", "config", "http.receivepack", "true")
    (port,) = free_ports(1)
    place.start(sys.executable, os.path.join(HERE, "git_server.py"), str(port), ready=f"http://127.0.0.1:{port}/")
    git("init", "-q", "--object-format=sha256", "-b", "main", "work")
    git("-C", "work", "remote", "add", "origin", f"http://127.0.0.1:{port}/pool.git")
    place.check(commit("one")[0] == 0, "a push")
    holds(place, port, read, lambda: commit("two"), {"routes": [{"match": "/pool.git/**", "kind": "git"}]}, refused=refused)


@scene("skopeo", "docker-registry")
def skopeo(place):
    """An image that was pulled before is pulled away; a push fails there."""

    def publish(version):
        kind = "application/vnd.oci.image."

        def blob(content, media):
            digest = hashlib.sha256(content).hexdigest()
            place.write("image/blobs/sha256/" + digest, content)
            return {"mediaType": kind + media, "digest": "sha256:" + digest, "size": len(content)}

        layer = blob(bytes(10_240 * version), "layer.v1.tar")
        about = {"architecture": "amd64", "os": "linux", "rootfs": {"type": "layers", "diff_ids": [layer["digest"]]}}
        config = blob(json.dumps(about).encode(), "config.v1+json")
        manifest = {"schemaVersion": 2, "mediaType": kind + "manifest.v1+json", "config": config, "layers": [layer]}
        entry = blob(json.dumps(manifest).encode(), "manifest.v1+json")
        entry["annotations"] = {"org.opencontainers.image.ref.name": "latest"}
        place.write("image/index.json", json.dumps({"schemaVersion": 2, "manifests": [entry]}))
        place.write("image/oci-layout", '{"imageLayoutVersion": "1.0.0"}')
        status, said = copy("oci:image:latest", f"docker://127.0.0.1:{port}/pool/app:latest")
        place.check(status == 0, "a push: " + said[-300:])

    def copy(source, target):
        options = ["--insecure-policy", "copy", "-q", "--src-tls-verify=false", "--dest-tls-verify=false"]
        return place.run(found("skopeo"), *options, source, target, environment={"XDG_RUNTIME_DIR": place.directory})

    def read(url, into):
        status, said = copy(url.replace("http:", "docker:") + "/pool/app:latest", "dir:" + into)
        return tree(into) if status == 0 else said

    def refused(url):
        return copy("oci:image:latest", url.replace("http:", "docker:") + "/pool/other:latest")[0] != 0

    (port,) = free_ports(1)
    storage = f"storage: {{ filesystem: {{ rootdirectory: {place.directory}/data }} }}"
    place.write("registry.yml", f"version: 0.1\nlog: {{ level: error }}\n{storage}\nhttp: {{ addr: '127.0.0.1:{port}' }}\n")
    place.start(found("docker-registry"), "serve", "registry.yml", ready=f"http://127.0.0.1:{port}/v2/")
    publish(1)
    holds(place, port, read, lambda: publish(2), {"routes": [{"match": "/**", "kind": "oci"}]}, refused=refused)


SCENES = [hg, svn, git_sha256, skopeo]
