"""Programs that read published folders: maven, go, gem, composer, dnf, ostree."""

import hashlib
import json
import os
import zipfile

from place import found, scene
from reads import folder, holds, tree


def archive(path, files):
    """Writes a ZIP archive."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with zipfile.ZipFile(path, "w") as file:
        for name, content in files.items():
            file.writestr(name, content)


@scene("mvn")
def maven(place):
    """A project with a parent and an extension of a repository is read into an empty local one."""
    model = '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'

    def publish(version):
        for name, kind in (("parent", "pom"), ("tide", "jar")):
            path = f"mirror/example/{name}/{version}/{name}-{version}"
            about = f"<groupId>example</groupId><artifactId>{name}</artifactId><version>{version}</version>"
            place.write(path + ".pom", f"{model}{about}<packaging>{kind}</packaging></project>")
            if kind == "jar":
                archive(place.directory + "/" + path + ".jar", {"tide.txt": "low water " * int(version)})
            for one in (".pom", ".jar")[: 1 + (kind == "jar")]:
                with open(place.directory + "/" + path + one, "rb") as file:
                    place.write(path + one + ".sha1", hashlib.sha1(file.read()).hexdigest())
        used = f"<groupId>example</groupId><artifactId>tide</artifactId><version>{version}</version>"
        parent = f"<parent><groupId>example</groupId><artifactId>parent</artifactId><version>{version}</version><relativePath/></parent>"
        extension = f"<build><extensions><extension>{used}</extension></extensions></build>"
        place.write("project/pom.xml", f"{model}{parent}<artifactId>pool</artifactId><packaging>pom</packaging>{extension}</project>")

    def read(url, into):
        place.write("settings.xml", f"<settings><mirrors><mirror><mirrorOf>*</mirrorOf><url>{url}</url></mirror></mirrors></settings>")
        status, said = place.run(found("mvn"), *"-q -B -s settings.xml -f project/pom.xml validate".split(), f"-Dmaven.repo.local={into}")
        return tree(into, ".jar", ".pom") if status == 0 else said

    # Maven adds this to old extensions.
    archive(place.directory + "/mirror/org/codehaus/plexus/plexus-utils/1.1/plexus-utils-1.1.jar", {"a": "a"})
    publish("1")
    holds(place, place.site(folder(place.directory + "/mirror")), read, lambda: publish("2"))


@scene("go")
def go(place):
    """A module is read by its proxy's protocol into an empty cache."""

    def publish(version):
        root = "mirror/tide.example/pool/@v/"
        place.write(root + "list", "".join(f"v1.{one}.0\n" for one in range(version + 1)))
        about = "module tide.example/pool\n"
        place.write(f"{root}v1.{version}.0.info", json.dumps({"Version": f"v1.{version}.0", "Time": "2026-01-01T00:00:00Z"}))
        place.write(f"{root}v1.{version}.0.mod", about)
        inside = f"tide.example/pool@v1.{version}.0/"
        archive(f"{place.directory}/{root}v1.{version}.0.zip", {inside + "go.mod": about, inside + "a.go": "package pool\n" * 99})

    def read(url, into):
        own = {"GOPROXY": url, "GONOSUMDB": "*", "GOFLAGS": "-mod=mod -modcacherw", "GOMODCACHE": os.path.join(place.directory, into)}
        status, said = place.run(found("go"), "mod", "download", "-json", "tide.example/pool@latest", environment=own)
        return tree(into, ".zip", ".mod", ".info") if status == 0 else said

    publish(0)
    holds(place, place.site(folder(place.directory + "/mirror")), read, lambda: publish(1))


@scene("gem")
def gem(place):
    """A gem is installed from an index by a machine that has nothing of it."""

    def publish(version):
        place.write("pool/lib/tide.rb", f"TIDE = {version}\n" * 99)
        about = 's.name = "tide"; s.summary = "a"; s.authors = ["a"]; s.files = ["lib/tide.rb"]'
        place.write("pool/tide.gemspec", f'Gem::Specification.new {{ |s| {about}; s.version = "{version}" }}')
        os.makedirs(place.directory + "/mirror/gems", exist_ok=True)
        output = f"{place.directory}/mirror/gems/tide-{version}.gem"
        place.run(found("gem"), "build", "-C", "pool", "tide.gemspec", "-o", output)
        status, said = place.run(found("gem"), "generate_index", "-q", "-d", place.directory + "/mirror")
        place.check(status == 0, "an index of gems: " + said[-300:])

    def read(url, into):
        options = ["--clear-sources", "--source", url + "/", "-i", into, "--no-document", "--norc"]
        own = {"HOME": os.path.join(place.directory, into), "GEM_SPEC_CACHE": os.path.join(place.directory, into, "specs")}
        status, said = place.run(found("gem"), "install", "tide", *options, environment=own)
        return tree(into, ".gem", ".rb") if status == 0 else said

    publish(1)
    holds(place, place.site(folder(place.directory + "/mirror")), read, lambda: publish(2))


@scene("composer", "unzip")
def composer(place):
    """A package is installed from a repository by a machine that has nothing of it."""

    def publish(version):
        known = {}
        for one in range(1, version + 1):
            name = f"tide-{one}.zip"
            archive(f"{place.directory}/mirror/{name}", {"composer.json": '{"name": "pool/tide"}', "tide.php": "<?php\n" * one})
            known[f"{one}.0"] = {
                "name": "pool/tide",
                "version": f"{one}.0",
                "dist": {"type": "zip", "url": "http://gone.example/", "reference": str(one)},
            }
        mirrors = [{"dist-url": "/tide-%reference%.zip", "preferred": True}]
        place.write("mirror/packages.json", json.dumps({"packages": {"pool/tide": known}, "mirrors": mirrors}))

    def read(url, into):
        project = {
            "repositories": [{"type": "composer", "url": url}, {"packagist.org": False}],
            "config": {"secure-http": False},
            "require": {"pool/tide": "*"},
        }
        place.write(into + "/composer.json", json.dumps(project))
        own = {"COMPOSER_HOME": os.path.join(place.directory, into, "home"), "COMPOSER_ALLOW_SUPERUSER": "1"}
        status, said = place.run(found("composer"), "update", "-n", "-d", into, environment=own)
        return tree(into + "/vendor/pool") if status == 0 else said

    publish(1)
    holds(place, place.site(folder(place.directory + "/mirror")), read, lambda: publish(2))


@scene("dnf", "createrepo_c", "rpmbuild")
def dnf(place):
    """A package is downloaded from a repository into an empty system."""

    def publish(version):
        place.write(
            "tide.spec", f"Name: tide\nVersion: {version}\nRelease: 1\nSummary: a\nLicense: a\nBuildArch: noarch\n%description\na\n%files\n"
        )
        where = f"_rpmdir {place.directory}/mirror"
        status, said = place.run(found("rpmbuild"), "-bb", "--define", where, "--define", f"_topdir {place.directory}/top", "tide.spec")
        place.check(status == 0, "a package: " + said[-300:])
        status, said = place.run(found("createrepo_c"), "-q", "--update", "mirror")
        place.check(status == 0, "a repository: " + said[-300:])

    def read(url, into):
        inside = os.path.join(place.directory, into)
        options = f"-y --disablerepo=* --repofrompath=tides,{url} --nogpgcheck --releasever=1 --downloadonly --installroot={inside}"
        sets = ["retries=1", f"cachedir={inside}/cache", "keepcache=1", "reposdir=/none", f"logdir={inside}"]
        status, said = place.run(found("dnf"), *options.split(), *(f"--setopt={one}" for one in sets), "install", "tide")
        return sorted(tree(inside, ".rpm").values()) if status == 0 else said

    publish(1)
    holds(place, place.site(folder(place.directory + "/mirror")), read, lambda: publish(2))


@scene("ostree")
def ostree(place):
    """A branch is pulled into an empty repository, and its objects are whole."""

    def run(*words):
        return place.run(found("ostree"), *words)

    def publish(version):
        place.write("files/tide", f"low water {version}\n" * 999)
        status, said = run("--repo=mirror", "commit", "-b", "tides", f"--subject={version}", "files")
        place.check(status == 0, "a commit: " + said[-300:])

    def read(url, into):
        run(f"--repo={into}", "init", "--mode=archive")
        run(f"--repo={into}", "remote", "add", "--no-gpg-verify", "u", url)
        status, said = run(f"--repo={into}", "pull", "u", "tides")
        if status or run(f"--repo={into}", "fsck")[0]:
            return said
        return run(f"--repo={into}", "rev-parse", "u:tides")[1], tree(into + "/objects", ".filez", ".commit")

    run("--repo=mirror", "init", "--mode=archive")
    publish(1)
    holds(place, place.site(folder(place.directory + "/mirror")), read, lambda: publish(2))


SCENES = [maven, go, gem, composer, dnf, ostree]
