"""Clients that are libraries: python-redmine, influxdb-client, OpenTelemetry's exporter, matrix-nio."""

import json
import re
import urllib.parse

from place import python_with, scene, shown


def taken(place, script, *words, module, within=60):
    """Runs a script by a Python with a module."""
    return place.run(python_with(module), "-c", script, *words, within=within)


def delivered(place, done, there):
    """After the outage what was reported as done is there once, and nothing else."""
    place.back()
    place.online()
    rest = place.settled()
    place.check(rest == [], f"back, all is delivered: {shown(rest)}")
    place.check(sorted(there()) == sorted(done), f"back, what was done is there once: {there()}, not {done}")


def tracker():
    """Plays Redmine's API for issues; returns it with the issues."""
    issues = {1: {"id": 1, "subject": "first", "project": {"id": 1, "name": "pool"}}}

    def play(asked):
        path, kind = urllib.parse.urlsplit(asked.path).path, {"Content-Type": "application/json; charset=utf-8"}
        number = re.fullmatch(r"/issues/(\d+)\.json", path)
        if asked.fields.get("X-Redmine-API-Key") != "k":
            return 401, {}, b""
        if path == "/projects/1/issues.json" and asked.method == "POST":
            issue = {"id": len(issues) + 1, **json.loads(asked.body)["issue"]}
            issues[issue["id"]] = issue
            return 201, {**kind, "Location": f"/issues/{issue['id']}"}, json.dumps({"issue": issue})
        if path == "/issues.json":
            return 200, kind, json.dumps({"issues": list(issues.values()), "total_count": len(issues), "offset": 0, "limit": 25})
        if not number or int(number[1]) not in issues:
            return 404, {}, b""
        if asked.method == "PUT":
            issues[int(number[1])] |= json.loads(asked.body)["issue"]
            return 204, {}, b""
        return 200, kind, json.dumps({"issue": issues[int(number[1])]})

    return play, issues


REDMINE = """
import redminelib, sys
redmine = redminelib.Redmine(sys.argv[1], key="k")
if sys.argv[2] == "list":
    print(",".join(sorted(issue.subject for issue in redmine.issue.all())))
elif sys.argv[2] == "create":
    redmine.issue.create(project_id=1, subject=sys.argv[3])
else:
    redmine.issue.update(1, subject=sys.argv[3])
"""


@scene(modules=("redminelib",))
def redmine(place):
    """Issues that were read are there away; a new subject that the library reports as set is set afterwards."""
    play, issues = tracker()
    # The library takes 202 for a failure, and a new issue's answer has its number.
    place.begin(place.site(play).port, {"routes": [{"match": "POST /**", "queue": "never"}]})

    def run(*words):
        return taken(place, REDMINE, place.url, *words, module="redminelib")

    place.check(run("list") == (0, "first\n"), "online, a list")
    place.check(run("update", "low")[0] == 0 and issues[1]["subject"] == "low", "online, an edit")
    place.check(run("create", "second")[0] == 0 and len(issues) == 2, "online, a new issue")
    place.check(run("list") == (0, "low,second\n"), "online, the list")
    place.away()
    status, said = run("list")
    place.check((status, said) == (0, "low,second\n"), f"away, the list: {said[-300:]}")
    edit, create = run("update", "high"), run("create", "third")
    print(f"  away: an edit ends with {edit[0]}, a new issue with {create[0]}: {create[1].strip()[-80:]}; {shown(place.operations())}")
    subjects = ["high" if edit[0] == 0 else "low", "second"] + ["third"] * (create[0] == 0)
    delivered(place, subjects, lambda: [issue["subject"] for issue in issues.values()])


INFLUX = """
import influxdb_client, sys
from influxdb_client.client.write_api import SYNCHRONOUS
with influxdb_client.InfluxDBClient(url=sys.argv[1], token="t", org="o", retries=False) as client:
    for value in sys.argv[2:]:
        client.write_api(write_options=SYNCHRONOUS).write("tides", "o", f"level value={value} {value}")
"""


@scene(modules=("influxdb_client",))
def influxdb_client(place):
    """Points are kept while the database is away, and are there once afterwards."""
    got = []

    def play(asked):
        if asked.method == "POST" and asked.path.startswith("/api/v2/write"):
            got.extend(re.findall(r"value=(\d+)", asked.body.decode()))
        return 204, {}, b""

    place.begin(place.site(play).port, {"routes": [{"match": "POST /api/v2/write", "kind": "telemetry"}]})

    def run(*values):
        return taken(place, INFLUX, place.url, *values, module="influxdb_client")

    place.check(run("1")[0] == 0 and got == ["1"], f"online, a point: {got}")
    place.away()
    status, said = run("2", "3")
    place.check(status == 0, f"away, points: {said[-300:]}")
    delivered(place, ["1", "2", "3"], lambda: got)
    with place.flapping():
        said = [run(str(value))[0] for value in range(4, 10)]
    place.settled()
    place.check(said == [0] * 6, f"over a line that comes and goes, points: {said}")
    # A point that comes again has the same time: the database has it once.
    place.check(sorted(set(got)) == [str(value) for value in range(1, 10)], f"over a line that comes and goes, each is there: {got}")


OTLP = """
import sys
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExportResult
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
results, exporter = [], OTLPSpanExporter(endpoint=sys.argv[1] + "/v1/traces", timeout=5)
class Noting:
    def export(self, spans):
        results.append(exporter.export(spans))
        return results[-1]
    def shutdown(self): exporter.shutdown()
    def force_flush(self, *_): return True
provider = TracerProvider(shutdown_on_exit=False)
provider.add_span_processor(SimpleSpanProcessor(Noting()))
for name in sys.argv[2:]:
    provider.get_tracer("t").start_span(name).end()
print(sum(one == SpanExportResult.SUCCESS for one in results))
"""


@scene(modules=("opentelemetry.exporter.otlp.proto.http",))
def otlp(place):
    """Spans are kept while the collector is away, and are there once afterwards."""
    got = []

    def play(asked):
        if asked.method == "POST":
            got.extend(re.findall(r"tide-\d", asked.body.decode("latin-1")))
        return 200, {"Content-Type": "application/x-protobuf"}, b""

    place.begin(place.site(play).port, {"routes": [{"match": "POST /v1/traces", "kind": "telemetry"}]})

    def run(*names):
        status, said = taken(place, OTLP, place.url, *names, module="opentelemetry.exporter.otlp.proto.http")
        return status, said.strip().splitlines()[-1:]

    said = run("tide-1")
    place.check(said == (0, ["1"]) and got == ["tide-1"], f"online, a span: {said} {got}")
    place.away()
    said = run("tide-2", "tide-3")
    place.check(said == (0, ["2"]), f"away, spans: {said}")
    delivered(place, ["tide-1", "tide-2", "tide-3"], lambda: got)


MATRIX = """
import asyncio, nio, sys
async def main():
    client = nio.AsyncClient(sys.argv[1], "@ann:pool", config=nio.AsyncClientConfig(max_timeouts=1, request_timeout=10))
    client.access_token, client.user_id = "t", "@ann:pool"
    for text in sys.argv[2:]:
        try:
            said = await client.room_send("!r:pool", "m.room.message", {"msgtype": "m.text", "body": text}, tx_id=text)
        except Exception as error:
            said = error
        print(type(said).__name__, flush=True)
    await client.close()
asyncio.run(main())
"""


@scene(modules=("nio",))
def matrix(place):
    """Messages that matrix-nio reports as sent arrive once, in the order in which they were written."""
    got = []

    def play(asked):
        if asked.method == "PUT" and "/send/" in asked.path:
            if asked.path not in [path for path, _ in got]:
                got.append((asked.path, json.loads(asked.body)["body"]))
            return 200, {"Content-Type": "application/json"}, json.dumps({"event_id": f"$e{len(got)}"})
        return 200, {"Content-Type": "application/json"}, "{}"

    reply = {"status": 200, "type": "application/json", "body": '{"event_id":"$waiting"}'}
    route = {"match": "PUT /_matrix/client/v3/rooms/*/send/**", "order": "sender", "offline_response": reply, "queue": "always"}
    place.begin(place.site(play).port, {"routes": [route], "queue": {"uncertain": "retry"}, "idempotency": {"honoured": "yes"}})

    def run(*texts):
        status, said = taken(place, MATRIX, place.url, *texts, module="nio")
        return said.split() if status == 0 else (status, said[-300:])

    def bodies():
        return [body for _, body in got]

    said = run("1")
    place.check(said == ["RoomSendResponse"] and bodies() == ["1"], f"online, a message: {said} {got}")
    place.away()
    texts = [str(number) for number in range(2, 12)]
    said = run(*texts)
    place.check(said == ["RoomSendResponse"] * 10, f"away, messages: {said}")
    delivered(place, ["1", *texts], bodies)
    place.check(bodies() == ["1", *texts], f"back, in their order: {bodies()}")
    with place.flapping():
        said = run(*(str(number) for number in range(12, 40)))
    place.settled()
    # The line may be cut within an answer, as it may be without Rockpool.
    sent = [str(number) for number, kind in enumerate(said, 12) if kind == "RoomSendResponse"]
    print(f"  over a line that comes and goes: {len(sent)} of 28 messages are reported as sent")
    place.check(set(sent) <= set(bodies()), f"over a line that comes and goes, what was reported as sent is there: {said} {bodies()}")
    place.check(bodies() == sorted(bodies(), key=int), f"over a line that comes and goes, in their order: {bodies()}")


SCENES = [redmine, influxdb_client, otlp, matrix]
