"""The inputs that the fuzzer has found, kept in the repository: a file for each target, a line of base64 for each input.

Only the smallest inputs are kept, up to `LIMIT` bytes a file: each reached something new, and small ones say most for a byte."""

import base64
import hashlib
from pathlib import Path

LIMIT = 16_000


def of(target, root):
    """The file that keeps the inputs of a fuzz target, and the folder that the fuzzer fills; None of other targets."""
    if target.build != "fuzzer":
        return None
    name = target.name.removeprefix("fuzz ")
    return root / f"Tests/evidence/corpora/{name}.txt", root / f".build/fuzz-corpus/{name}"


def unpack(kept, folder):
    """Fills `folder` with the kept inputs; those that the fuzzer has found there stay."""
    folder.mkdir(parents=True, exist_ok=True)
    for line in kept.read_text().split() if kept.exists() else ():
        data = base64.b64decode(line)
        # As libFuzzer names its files.
        Path(folder, hashlib.sha1(data).hexdigest()).write_bytes(data)


def pack(kept, folder):
    """Keeps the smallest inputs of `folder`."""
    lines = sorted({base64.b64encode(path.read_bytes()).decode() for path in folder.iterdir() if path.stat().st_size})
    lines.sort(key=len)
    room, chosen = LIMIT, []
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            break
        chosen.append(line)
    if chosen:
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text("\n".join(chosen) + "\n")
