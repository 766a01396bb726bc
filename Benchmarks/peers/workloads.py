"""The workloads, and the targets that RESULTS.md shows (docs/architecture.md#speed)."""

import json
from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class Target:
    measure: str  # cpu, rate or p99: an attribute of a sample
    peer: str
    limit: float

    def is_met(self, ratio):
        return ratio >= self.limit if self.measure == "rate" else ratio <= self.limit

    def __str__(self):
        return f"{'≥' if self.measure == 'rate' else '≤'} {self.limit:g}"


@dataclass(frozen=True)
class Workload:
    name: str
    title: str
    path: str  # at the origin; with a number appended if `distinct`
    size: str
    expected: str  # hit, pass (never stored), validated (by a 304; or passed on), store (every URL is new) or mix (mix.py)
    targets: tuple = field(default=())
    forward: bool = False  # with absolute-form targets, as clients of a forward proxy send them
    fields: dict = field(default_factory=dict)  # further request fields
    conditional: bool = False  # with the ETag of the stored response, so that the answer is a 304
    digest: str = ""  # of the body that each response has, if it is not the whole
    is_stale: bool = False  # of an origin that is stopped, so that each response is stale
    # What differs from request to request: ids (`traceparent`, `X-Request-Id`), users (1,000 credentials), keys (`Idempotency-Key`).
    generated: tuple = ()
    body: str = ""  # of a POST; a GET without one
    # Or items: a declared resource; or tls; or h2: by HTTP/2 where the proxy supports it, otherwise HTTP/1.1 over TLS.
    upstream: str = "http"
    protocol: str = "http"  # or tls: HTTP/1.1 over TLS; or h2: HTTP/2 over TLS

    @property
    def method(self):
        return "POST" if self.body else "GET"

    @property
    def distinct(self):
        return self.expected == "store"


BEARER = {"Authorization": "Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"}


def hit(name, title, *targets, path="/hit/1k", size="1k", expected="hit", **more):
    return Workload(name, title, path, size, expected, tuple(targets), **more)


ALL = {
    each.name: each
    for each in (
        Workload(
            "hit-1k",
            "hot hit, 1 KB",
            "/hit/1k",
            "1k",
            "hit",
            (Target("cpu", "nginx", 0.75), Target("cpu", "squid", 0.5), Target("p99", "nginx", 1)),
        ),
        Workload("hit-100k", "hit, 100 KB", "/hit/100k", "100k", "hit", (Target("rate", "nginx", 1),)),
        Workload("hit-1m", "hit, 1 MB", "/hit/1m", "1m", "hit", (Target("rate", "nginx", 1),)),
        Workload("pass-1k", "pass-through, 1 KB", "/pass/1k", "1k", "pass", (Target("cpu", "squid", 0.75),)),
        Workload("store-1k", "stored miss, 1 KB, new URLs", "/store/", "1k", "store", (Target("cpu", "nginx", 2),)),
        Workload("pass-tls-1k", "pass-through, 1 KB, TLS upstream", "/pass/1k", "1k", "pass", upstream="tls"),
        Workload("store-tls-1k", "stored miss, 1 KB, TLS upstream", "/store/tls/", "1k", "store", upstream="tls"),
        Workload("pass-h2-1k", "pass-through, 1 KB, HTTP/2 upstream (nginx: TLS)", "/pass/1k", "1k", "pass", upstream="h2"),
        Workload("store-h2-1k", "stored miss, 1 KB, HTTP/2 upstream (nginx: TLS)", "/store/h2/", "1k", "store", upstream="h2"),
        Workload(
            "post",
            "POST passed on",
            "/write/1",
            "1k",
            "pass",
            (Target("cpu", "nginx", 4),),
            fields={"Content-Type": "application/json"},
            body=json.dumps({"title": "low water", "body": "x" * 80}),
            digest="empty",
        ),
        Workload("validated-1k", "hit validated by a 304, 1 KB", "/validated/1k", "1k", "validated", (Target("cpu", "nginx", 2),)),
        Workload(
            "item-1k", "read of a declared resource, 1 KB", "/items/42", "item", "validated", (Target("cpu", "nginx", 3),), upstream="items"
        ),
        hit("bearer-1k", "hot hit, 1 KB, bearer token", Target("cpu", "nginx", 0.75), fields=BEARER),
        hit("cookie-1k", "hot hit, 1 KB, cookie", Target("cpu", "nginx", 0.75), fields={"Cookie": "session=8f14e45fceea167a; theme=dark"}),
        hit("key-1k", "hot hit, 1 KB, API key", Target("cpu", "nginx", 0.75), fields={"X-Api-Key": "8f14e45fceea167a5a36dedd4bea2543"}),
        hit("private-1k", "private hit, 1 KB, by identity", Target("cpu", "nginx", 0.75), path="/private/1k", fields=BEARER),
        hit("conditional-1k", "304 to a bearer", Target("cpu", "nginx", 1), fields=BEARER, conditional=True, digest="empty"),
        hit("range-1k", "one range of 1 KB", Target("cpu", "nginx", 1), fields={"Range": "bytes=100-299"}, digest="1k-range"),
        hit("stale-1k", "stale hit, 1 KB, upstream away", Target("cpu", "nginx", 1), path="/stale/1k", is_stale=True),
        hit("tls-1k", "hot hit, 1 KB, TLS", Target("cpu", "nginx", 1), protocol="tls"),
        hit("tls-bearer-1k", "hot hit, 1 KB, TLS, bearer token", Target("cpu", "nginx", 1), fields=BEARER, protocol="tls"),
        hit("h2-1k", "hot hit, 1 KB, HTTP/2", Target("cpu", "nginx", 2), protocol="h2"),
        hit("h2-bearer-1k", "hot hit, 1 KB, HTTP/2, bearer token", Target("cpu", "nginx", 2), fields=BEARER, protocol="h2"),
        Workload("mix-h2", "mix over HTTP/2, fixed rate", "/hit/1k", "1k", "mix", fields=BEARER, protocol="h2"),
        Workload("forward-hit-1k", "hot hit, 1 KB, forward proxy", "/hit/1k", "1k", "hit", (Target("cpu", "squid", 0.5),), True),
        Workload("forward-pass-1k", "pass-through, 1 KB, forward proxy", "/pass/1k", "1k", "pass", (Target("cpu", "squid", 0.75),), True),
    )
}

# The same with requests of which no two are alike, as clients with tracing send them.
for name in ("hit-1k", "pass-1k", "validated-1k", "store-1k", "post", "item-1k"):
    each = ALL[name]
    ALL[f"unlike-{name}"] = replace(
        each,
        name=f"unlike-{name}",
        title=f"{each.title}; own ids",
        path=f"{each.path}unlike/" if each.distinct else each.path,
        generated=("ids",),
    )
for name in ("hit-1k", "pass-1k", "validated-1k"):
    each = ALL[f"unlike-{name}"]
    targets = (Target("cpu", "nginx", 0.9),) if name == "hit-1k" else each.targets
    title = f"{ALL[name].title}; own ids, 1,000 users"
    ALL[f"users-{name}"] = replace(each, name=f"users-{name}", title=title, targets=targets, generated=("ids", "users"))
ALL["keys-post"] = replace(ALL["unlike-post"], name="keys-post", title="POST passed on; own ids, client's keys", generated=("ids", "keys"))

# The proxies that support forward proxying, and those that support TLS, HTTP/2 and stale
# responses without an origin as they are packaged.
FORWARD_PROXIES = ("rockpool", "squid")
SECURE_PROXIES = ("rockpool", "nginx")


def supports(proxy, workload):
    """True if the proxy can serve the workload."""
    # Squid and Varnish do not reuse a response for requests with a credential as they are packaged.
    has_credential = "users" in workload.generated or workload.fields.keys() - {"Content-Type"}
    is_special = workload.expected == "validated" or workload.is_stale
    if {workload.protocol, workload.upstream} != {"http"} or has_credential or is_special:
        return proxy in SECURE_PROXIES
    return not workload.forward or proxy in FORWARD_PROXIES
