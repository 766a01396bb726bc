"""The state after a power cut: the initial directory, and the part of a journal (disk.c) that had become durable.

Bytes are durable after a successful sync of their file; bytes of a failed sync never become durable, even if a later one succeeds: the
kernel has discarded them. Names are durable after a sync of their directory, or of the file itself, as in ext4, XFS and btrfs; the earlier
names on which they depend are then durable too. Nothing else is: ext4's journal would preserve more, btrfs does not.

Changes that are not durable are lost (`all`), or lost except for names (`names`: a written journal with delayed data), or each 4 KB and
each name survives randomly, in any order (`chance`)."""

import shutil
from pathlib import Path

import shim

BLOCK = 4096
MODES = ("all", "names", "chance")
PENDING, DURABLE, GIVEN_UP = range(3)


class Change:
    """A change of a file's bytes. `size`: the size after a truncation or an allocation, else None."""

    def __init__(self, record):
        self.state, self.offset, self.data = PENDING, record.offset, record.data
        self.size = None if record.call == shim.WRITE else record.length
        self.only_grows = record.call == shim.ALLOCATE

    def apply(self, file, chance=None):
        """Applies the change. With `chance` each page is written or not, at random."""
        if self.size is not None:
            if (chance is None or chance.random() < 0.5) and not (self.only_grows and file.seek(0, 2) >= self.size):
                file.truncate(self.size)
            return
        at = 0
        while at < len(self.data):
            size = min(BLOCK - (self.offset + at) % BLOCK, len(self.data) - at)
            if chance is None or chance.random() < 0.5:
                file.seek(self.offset + at)
                file.write(self.data[at : at + size])
            at += size


class Node:
    """A file, independent of its names: its content when the journal began, and its changes."""

    def __init__(self, base=None):
        self.base, self.changes = base, []

    def settle(self, state):
        for change in self.changes:
            if change.state == PENDING:
                change.state = state

    def write(self, path, mode, chance):
        if self.base:
            shutil.copy(self.base, path)
        else:
            path.touch(0o600)
        if self.changes:
            with open(path, "r+b") as file:
                for change in self.changes:
                    if change.state == DURABLE:
                        change.apply(file)
                    elif mode == "chance":
                        change.apply(file, chance)


class Name:
    """A change of the directory tree."""

    def __init__(self, record, node):
        self.call, self.path, self.target, self.node, self.settled = record.call, record.path, record.target, node, False

    @property
    def paths(self):
        return {self.path, self.target} - {""}

    @property
    def directories(self):
        return {parent(path) for path in self.paths}

    def apply(self, tree, directories):
        match self.call:
            case shim.CREATE:
                tree[self.path] = self.node
            case shim.RENAME:
                tree[self.target] = tree.pop(self.path)
            case shim.LINK:
                tree[self.target] = tree[self.path]
            case shim.UNLINK:
                tree.pop(self.path, None)
            case shim.MKDIR:
                directories.add(self.path)
            case shim.RMDIR:
                directories.discard(self.path)


def parent(path):
    return path.rpartition("/")[0]


class Disk:
    """`golden` and the operations on it, up to operation number `cut`."""

    def __init__(self, golden, records, cut):
        golden = Path(golden)
        paths = {str(path.relative_to(golden)): path for path in golden.rglob("*")}
        self.directories = {name for name, path in paths.items() if path.is_dir()}
        self.base = {name: Node(path) for name, path in paths.items() if path.is_file()}
        self.tree, self.nodes, self.names = dict(self.base), {}, []
        for record in records:
            if record.number > cut:
                break
            self.take(record)

    def take(self, record):
        match record.call:
            case shim.OPEN:
                if record.path in self.tree:
                    self.nodes[record.inode] = self.tree[record.path]
            case shim.CREATE:
                self.nodes[record.inode] = Node()
                self.rename(record, self.nodes[record.inode])
            case shim.WRITE | shim.TRUNCATE | shim.ALLOCATE:
                self.nodes[record.inode].changes.append(Change(record))
            case shim.SYNC:
                self.synchronize(record)
            case _:
                self.rename(record, self.tree.get(record.path))

    def rename(self, record, node):
        self.names.append(Name(record, node))
        self.names[-1].apply(self.tree, set())

    def synchronize(self, record):
        node = self.nodes.get(record.inode)
        if node:
            node.settle(DURABLE if record.succeeded else GIVEN_UP)
        if record.succeeded:
            for name in self.names:
                if node and name.node is node and name.call != shim.UNLINK or not node and record.path in name.directories | name.paths:
                    self.settle(name)

    def settle(self, name):
        """Settles the name with the earlier ones on which it depends: of the same file, of its names, of the directories above them."""
        if name.settled:
            return
        name.settled = True
        above = {path[:at] for path in name.paths for at, letter in enumerate(path) if letter == "/"} | name.paths
        for earlier in self.names[: self.names.index(name)]:
            emptied = name.call == shim.RMDIR and name.path in earlier.directories
            if emptied or earlier.paths & above or name.node and earlier.node is name.node:
                self.settle(earlier)

    def leave(self, target, mode, chance):
        """Fills `target` with the state after the power has come back."""
        for name in reversed(self.names):
            if mode == "names" or mode == "chance" and chance.random() < 0.5:
                self.settle(name)
        tree, directories = dict(self.base), set(self.directories)
        for name in self.names:
            if name.settled:
                name.apply(tree, directories)
        for directory in sorted(directories):
            Path(target, directory).mkdir(0o700, parents=True, exist_ok=True)
        for path, node in tree.items():
            # The index of the log is shared memory; SQLite rebuilds it.
            if not path.endswith("-shm"):
                node.write(Path(target, path), mode, chance)
