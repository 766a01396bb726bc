"""The effects of the portal: stored copies, and writes that were not carried out."""

import asyncio
import collections
import http.client
from dataclasses import dataclass, field

from origin import exchange
from portalclients import ACCEPTS
from portalorigin import MARK, TELLING, UNTELLABLE, stamp

# The time before the portal's end in which a later check of the connection could not detect it.
LAST_MOMENT = 0.2
OPEN = ("pending", "inflight", "uncertain", "parked", "conflicted", "dead")


@dataclass
class Findings:
    """The findings of one configuration. `examples` has a few messages of each kind."""

    has_probe: bool
    copies: int = 0
    # Stored copies that are not the API's: replacing one of the API's, and new ones.
    bad: int = 0
    new: int = 0
    lost_copies: int = 0
    portal_reads: int = 0
    other_reads: int = 0
    acknowledged: int = 0
    queued: int = 0
    # Acknowledged, but ended or removed without effect; acknowledged and still kept, but without further progress; acknowledged only by the
    # portal, not by Rockpool.
    lost: list = field(default_factory=list)
    stuck: list = field(default_factory=list)
    swallowed: list = field(default_factory=list)
    twice: int = 0
    left: collections.Counter = field(default_factory=collections.Counter)
    examples: list = field(default_factory=list)

    def tell(self, what, words, most=4):
        if sum(known == what for known, _ in self.examples) < most:
            self.examples.append((what, words))

    @property
    def faults(self):
        """The number of faults: with a probe all but those hidden by the probe's own response; without one those of later responses of a
        recognizable portal."""

        def counts(taken):
            if taken is None:
                return True
            return taken.face != UNTELLABLE if self.has_probe else taken.face in TELLING and not taken.was_first

        writes = len(self.stuck) + sum(counts(taken) for taken in self.lost + self.swallowed)
        # A URL first requested during a portal may get its response stored: only a probe detects that.
        return self.bad + self.new * self.has_probe + self.lost_copies + self.portal_reads + self.other_reads + self.twice + writes


async def judge(server, memory, has_probe):
    """With the API unreachable and the network switched off, every response comes from the cache."""
    found = Findings(has_probe)
    judge_reads(memory, found)
    judge_writes(server, memory, found)
    await memory.site.close()
    await asyncio.to_thread(server.network, "offline")
    for target, accept in sorted(memory.asked):
        await judge_copy(server, memory, found, target, accept)
    bundle = await asyncio.to_thread(export, server)
    if marks := bundle.count(MARK.encode()) + bundle.count(b'"portal": "login"'):
        found.tell("stored", f"the portal's bytes stand {marks} times in the exported cache")
        found.new = found.new or (0 if found.bad else marks)
    return found


def judge_reads(memory, found):
    for case, count in memory.wrong.most_common():
        what = case[0]
        if what.startswith("the portal"):
            found.portal_reads += count
        else:
            found.other_reads += count
        found.tell("read", f"{count} × {what} where a copy is stored, as {memory.examples[case]}", 12)


async def judge_copy(server, memory, found, target, accept):
    status, fields, body, _ = await exchange(server.gateway, "GET", target, f"Accept: {ACCEPTS[accept]}\r\n")
    if status == 200 and body is not None and stamp(body) in memory.site.given[target]:
        found.copies += 1
    elif status == 504:
        if (target, accept) in memory.kept:
            found.lost_copies += 1
            found.tell("copy gone", f"GET {target} ({accept}): {status} {fields.get('cache-status', '')}")
    else:
        is_replaced = (target, accept) in memory.kept
        found.bad += is_replaced
        found.new += not is_replaced
        found.tell(
            "stored for the copy" if is_replaced else "stored",
            f"GET {target} ({accept}): {status} "
            f"{fields.get('content-type', '')} {fields.get('location', '')} {fields.get('cache-status', '')}: {(body or b'')[:60]}",
            8,
        )


def judge_writes(server, memory, found):
    site = memory.site
    operations = {operation["id"]: operation for operation in server.operations()}
    found.left = collections.Counter(
        f"{operation['state']} ({operation['reason'] or operation['lastError'] or ''})"
        for operation in operations.values()
        if operation["state"] not in ("delivered", "cancelled", "superseded")
    )
    found.acknowledged, found.queued = len(memory.told), sum(told.is_queued for told in memory.told.values())
    found.twice = sum(count > 1 for count in site.effects.values())
    for line, told in memory.told.items():
        if site.effects[line]:
            continue
        taken = next((taken for taken in reversed(site.taken[line])), None)
        operation = operations.get(told.operation, {})
        words = f"{told.method} {line}: told {told.status}"
        if operation:
            words += f", {operation['state']} {operation['reason'] or ''}".rstrip() + f" after {operation['attempts']} attempts"
        if taken:
            late = ", the portal gone soon after" if taken.before_end < LAST_MOMENT else ""
            words += f"; taken by the portal ({taken.face}{', as its first answer' if taken.was_first else ''}{late})"
        kind = "stuck" if operation.get("state") in OPEN else "lost" if told.is_queued or told.is_applied else "swallowed"
        getattr(found, kind).append(taken)
        found.tell(kind, words)
    for line, count in site.effects.items():
        if count > 1:
            found.tell("twice", f"{line}: {count} times")


def export(server):
    connection = http.client.HTTPConnection("127.0.0.1", server.admin, timeout=60)
    try:
        connection.request("GET", "/v1/cache/export")
        return connection.getresponse().read()
    finally:
        connection.close()


def by_face(taken):
    """The number of lost writes per kind of portal, as its first response and in its last moment."""
    if not taken:
        return "0"
    faces = collections.Counter(one.face if one else "not sent" for one in taken)
    first = sum(one is not None and one.was_first for one in taken)
    last = sum(one is not None and one.before_end < LAST_MOMENT for one in taken)
    return (
        f"{len(taken)} ({', '.join(f'{count} {face}' for face, count in faces.most_common())}; {first} as a visit's first answer, "
        f"{last} in its last {LAST_MOMENT} s)"
    )
