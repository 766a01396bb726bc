"""Compares other parsers' readings of the recorded bytes with the recorder's own."""

import re

from recorder import Stream, next_piece
from references import LAST, Understood

SENTINEL = f"GET {LAST} HTTP/1.1\r\nHost: last\r\n\r\n".encode()
AT_ONCE = 100


def batches(stream):
    """The stream's complete requests, in batches: a parser that loses synchronization affects one batch only. An upgrade is in its own
    batch."""
    whole = [piece for piece in stream.pieces if not piece.message.values("Upgrade")]
    return [[piece] for piece in stream.pieces if piece not in whole] + [whole[at : at + AT_ONCE] for at in range(0, len(whole), AT_ONCE)]


def refuses_alone(reference, raw):
    """Requests that nginx refuses as a file server although HTTP permits them: a target that it cannot decode, and `*`."""
    target = raw.split(b" ")[1].partition(b"?")[0]
    return reference.name == "nginx" and re.search(rb"%(?![0-9a-fA-F]{2})|%00|^\*$", target)


def judge(reference, pieces, owners, wrong):
    """Lets the reference read the pieces one after the other on one connection, followed by a known request."""
    while pieces:
        follows = not pieces[-1].message.values("Upgrade")
        count = len(pieces) + follows
        found, status = reference.ask(b"".join(piece.raw for piece in pieces) + SENTINEL * follows, follows, 4 if follows else 0.3)
        for piece, understood in zip(pieces, found, strict=False):
            name = owners.get(id(piece), "a probe")
            wrong += [f"{reference.name}, {name}: {text}" for text in Understood.said(piece.message).differences(understood)]
        if len(found) == count and (not follows or found[-1].target == LAST.encode()):
            return
        stuck = min(len(found), len(pieces) - 1)
        name, raw = owners.get(id(pieces[stuck]), "a probe"), pieces[stuck].raw
        if status != 400 or not refuses_alone(reference, raw):
            wrong.append(f"{reference.name}, {name}: {status} after {len(found)} of {count}: {raw!r:.300}")
        pieces = pieces[stuck + 1 :]


def fragments(reference, stream, wrong):
    """No parser may accept a truncated request as complete."""
    if stream.rest:
        found, _ = reference.ask(stream.rest, ends=False, patience=0.5)
        wrong += [f"{reference.name} takes a fragment for {one.method!r} {one.target!r}: {stream.rest!r:.200}" for one in found]


def control(references):
    """Proves that differences are detected: an absolute target, which only nginx makes relative, and a complete request given as a
    fragment."""
    stream, wrong = Stream(bytearray(b"GET http://a.test/b HTTP/1.1\r\nHost: a.test\r\n\r\n")), []
    whole = Stream(bytearray(stream.data))
    stream.pieces.append(next_piece(stream))
    for reference in references:
        judge(reference, stream.pieces, {}, wrong)
        fragments(reference, whole, wrong)
    return len(wrong) == 1 + len(references)
