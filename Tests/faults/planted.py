"""The planted secrets, every encoding in which one could appear, and the outputs where each is permitted."""

import base64
import binascii
import random
import re
from dataclasses import dataclass, field

# The outputs that contain a client's writes by design: the outbox sends them again, and its owner reads it.
OUTBOX = (
    r"file state/(data\.sqlite|blobs/)|GET /v1/(operations|conflicts)/|GET /v1/operations/export|"
    r"cli outbox (show|export)|cli conflicts show"
)
# A URL is the key of a stored response, and the target of a queued write; its writer may read it again.
QUERY = r"file cache/cache\.sqlite|file state/data\.sqlite|status document"


@dataclass
class Secret:
    """`may` is a pattern of the outputs that may contain it; the default matches none."""

    name: str
    value: str
    may: str = "$^"
    forms: dict = field(default_factory=dict)

    def __post_init__(self):
        raw = self.value.encode()
        self.forms = {
            "as it is": raw,
            "in hex": binascii.hexlify(raw),
            "in HEX": binascii.hexlify(raw).upper(),
            "percent-encoded": b"".join(b"%%%02X" % byte for byte in raw),
            "in JSON escapes": b"".join(b"\\u%04x" % byte for byte in raw),
            "in UTF-16": self.value.encode("utf-16-le"),
        }
        for before in range(3):
            # The part of the base64 text that does not depend on the bytes before and after.
            text = base64.b64encode(bytes(before) + raw + bytes(2))
            inner = text[(8 * before + 5) // 6 : (8 * (before + len(raw))) // 6]
            self.forms[f"in base64 ({before})"] = inner
            self.forms[f"in base64url ({before})"] = inner.replace(b"+", b"-").replace(b"/", b"_")

    def seen_in(self, data):
        return next((form for form, text in self.forms.items() if text in data), None)


class Planted(dict):
    """Secrets by name; each value is one word of letters and digits that occurs nowhere else."""

    def __init__(self, seed):
        super().__init__()
        chance = random.Random(seed)
        for name, may in NAMES.items():
            word = "".join(chance.choices("abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789", k=28))
            self[name] = Secret(name, word, may)

    def add(self, name, value, may):
        self[name] = Secret(name, value, may)

    @property
    def words(self):
        return {name: secret.value for name, secret in self.items()}

    def basic(self, name):
        return base64.b64encode(f"user:{self[name].value}".encode()).decode()

    def judge(self, outputs):
        """(forbidden places of each secret found, number of permitted occurrences)."""
        wrong, allowed = {}, 0
        for where, data in outputs:
            for secret in self.values():
                if form := secret.seen_in(data):
                    if re.search(secret.may, where):
                        allowed += 1
                    else:
                        wrong.setdefault(secret.name, {})[where] = form
        return wrong, allowed


NAMES = {
    # Credentials: in memory, or sealed; never in clear.
    "bearer": "$^",
    "basic": "$^",
    "proxy authorization": "$^",
    "cookie": "$^",
    "set-cookie": "$^",
    "set-cookie of a write": "$^",
    "x-api-key": "$^",
    "x-auth-token": "$^",
    "x-access-token": "$^",
    "private-token": "$^",
    "dpop": "$^",
    "x-csrf-token": "$^",
    "x-amz-security-token": "$^",
    "identity field": "$^",
    "userinfo": "$^",
    "userinfo of connect": "$^",
    "challenge": "$^",
    "issued access token": "$^",
    "issued refresh token": "$^",
    "password of a parent": r"file rockpool\.yaml",
    # In the key and the target, but in no document, export or log.
    "access_token of a read": QUERY,
    "api_key of a read": QUERY,
    "signature of a read": QUERY,
    "access_token of a write": QUERY,
    "access_token of a write without a resource": QUERY,
    "password in a fragment": "$^",
    "access_token of a miss": QUERY,
    "access_token through the proxy": QUERY,
    "referer": QUERY,
    # Errors of an upstream, and redirect targets of a write.
    "broken line": "$^",
    "reason phrase": "$^",
    "token in a location": OUTBOX,
    # Written and read content.
    "password in a body": OUTBOX,
    "password in a conflict": OUTBOX + r"|file cache/",
    "private answer": OUTBOX + r"|file cache/",
    # May be shown, but not logged.
    "idempotency key": OUTBOX + r"|GET /v1/operations|cli outbox|status document",
}
