"""The test's side of the failing disk (disk.c): builds and arms it, and reads its journal."""

import ctypes
import mmap
import shutil
import struct
import subprocess
import tempfile
from collections import namedtuple
from pathlib import Path

from result import Skip

SOURCES = [Path(__file__).with_name(name) for name in ("disk.c", "disktold.c")]
# Same as in disk.h.
OPEN, CREATE, WRITE, SYNC, TRUNCATE, ALLOCATE, RENAME, UNLINK, LINK, MKDIR, RMDIR, READ = range(12)
FAULTS = {"kill": 1, "half": 2, "EIO": 3, "ENOSPC": 4, "short": 5, "EIO read": 3}
CHANGES, READS = sum(1 << call for call in range(CREATE, READ)), 1 << READ
RECORD = struct.Struct("=IIQQQIIQQ")
Record = namedtuple("Record", "call succeeded number inode offset path target data length")


class Block(ctypes.Structure):
    """`struct Control` of disk.h."""

    _fields_ = [
        ("count", ctypes.c_uint64),
        ("at", ctypes.c_uint64),
        ("faults", ctypes.c_uint64),
        ("armed", ctypes.c_uint32),
        ("fault", ctypes.c_uint32),
        ("sticky", ctypes.c_uint32),
        ("calls", ctypes.c_uint32),
        ("met", ctypes.c_char * 256),
    ]


class Shim:
    """One failing disk, for one server at a time, in its own directory."""

    def __init__(self):
        self.home = Path(tempfile.mkdtemp(prefix="rpf-disk-"))
        self.library, self.journal = self.home / "disk.so", self.home / "journal"
        compiler = shutil.which("cc") or shutil.which("clang")
        if not compiler:
            raise Skip("a C compiler")
        subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-Wall", "-Werror", *SOURCES, "-o", self.library], check=True)
        (self.home / "control").write_bytes(bytes(4096))
        with open(self.home / "control", "r+b") as file:
            self.block = Block.from_buffer(mmap.mmap(file.fileno(), 4096))

    def environment(self, root, journaled=False):
        """The environment of a process with its files below `root` on this disk."""
        self.disarm()
        self.journal.unlink(missing_ok=True)
        log = {"DISK_JOURNAL": str(self.journal)} if journaled else {}
        return {"LD_PRELOAD": str(self.library), "DISK_ROOT": str(root), "DISK_CONTROL": str(self.home / "control"), **log}

    def disarm(self):
        ctypes.memset(ctypes.addressof(self.block), 0, ctypes.sizeof(self.block))

    def arm(self, fault=None, at=0, sticky=False):
        """Starts counting. Without a fault it only counts."""
        self.block.armed = 0
        self.block.count = self.block.faults = 0
        self.block.fault, self.block.at, self.block.sticky = FAULTS.get(fault, 0), at, sticky
        self.block.calls = READS if fault == "EIO read" else CHANGES
        self.block.met = b""
        self.block.armed = 1

    @property
    def count(self):
        return self.block.count

    @property
    def met(self):
        """The first failed call."""
        return self.block.met.decode()

    def records(self):
        """The journal, in the order of execution."""
        data, at, found = self.journal.read_bytes(), 0, []
        while at < len(data):
            call, succeeded, number, inode, offset, path, target, size, length = RECORD.unpack_from(data, at)
            at += RECORD.size
            parts = []
            for part in (path, target, size):
                parts.append(data[at : at + part])
                at += part
            found.append(Record(call, bool(succeeded), number, inode, offset, parts[0].decode(), parts[1].decode(), parts[2], length))
        return found

    def discard(self):
        shutil.rmtree(self.home, ignore_errors=True)
