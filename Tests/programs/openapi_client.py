"""A client of the admin API that is made from its description at run time, and a check of the description itself.

    openapi_client.py DESCRIPTION URL TOKEN     calls every operation that changes nothing, and some that change, on a running server

Each call is checked against the description: parameters, status, media type and the schema of the answer. Every example in the description
is checked against its schema. Exits with 1 and one line for each finding.
"""

import json
import re
import sys
import urllib.error
import urllib.parse
import urllib.request

import yaml

KINDS = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
}


class Description:
    """The parsed description, with its operations by id."""

    def __init__(self, file):
        with open(file, encoding="utf-8") as text:
            self.document = yaml.safe_load(text)
        self.operations = {}
        for path, item in self.document["paths"].items():
            for method, operation in item.items():
                name = operation["operationId"]
                if name in self.operations:
                    raise SystemExit(f"operationId {name} is there twice")
                self.operations[name] = (method.upper(), path, operation)

    def resolved(self, part):
        while "$ref" in part:
            target = self.document
            for step in part["$ref"].removeprefix("#/").split("/"):
                target = target[step]
            part = target
        return part

    def faults(self, value, schema, place="answer"):
        """Yields where a value does not match its schema; the keywords that the description uses."""
        schema = self.resolved(schema)
        for part in schema.get("allOf", []):
            yield from self.faults(value, part, place)
        if "oneOf" in schema and sum(not any(self.faults(value, part)) for part in schema["oneOf"]) != 1:
            yield f"{place} matches none of its forms, or several"
        kinds = schema.get("type")
        kinds = [kinds] if isinstance(kinds, str) else kinds
        if kinds and not any(isinstance(value, KINDS[kind]) and not (kind in ("integer", "number") and value is True) for kind in kinds):
            yield f"{place} is {json.dumps(value)[:80]}, not {kinds}"
            return
        if "enum" in schema and value not in schema["enum"]:
            yield f"{place} is {value!r}, not one of {schema['enum']}"
        if "const" in schema and value != schema["const"]:
            yield f"{place} is {value!r}, not {schema['const']!r}"
        if isinstance(value, str) and "pattern" in schema and not re.search(schema["pattern"], value):
            yield f"{place} is {value!r}, which does not match {schema['pattern']}"
        if isinstance(value, (int, float)) and not schema.get("minimum", value) <= value <= schema.get("maximum", value):
            yield f"{place} is {value}, out of bounds"
        if isinstance(value, list):
            for index, item in enumerate(value):
                yield from self.faults(item, schema.get("items", {}), f"{place}[{index}]")
        if isinstance(value, dict):
            known = schema.get("properties", {})
            for name in schema.get("required", []):
                if name not in value:
                    yield f"{place} has no {name}"
            for name, item in value.items():
                if name in known:
                    yield from self.faults(item, known[name], f"{place}.{name}")
                elif schema.get("additionalProperties") is False:
                    yield f"{place} has an unknown member {name}"


class Client:
    """One method for each operation id: `client.listOperations(state="all")`. `body` is the JSON of a request."""

    def __init__(self, description, url, token):
        self.description, self.url, self.token = description, url, token
        self.called, self.faults = set(), []

    def __getattr__(self, name):
        if name not in self.description.operations:
            raise AttributeError(name)
        return lambda **arguments: self.call(name, **arguments)

    def request(self, name, body, arguments):
        method, path, operation = self.description.operations[name]
        query, fields = [], {"Authorization": f"Bearer {self.token}"}
        for parameter in map(self.description.resolved, operation.get("parameters", [])):
            value = arguments.pop(parameter["name"], None)
            if value is None:
                if parameter["required"]:
                    raise TypeError(f"{name} needs {parameter['name']}")
                continue
            self.faults += [f"{name}: {fault}" for fault in self.description.faults(value, parameter["schema"], parameter["name"])]
            words = [str(one).lower() if isinstance(one, bool) else str(one) for one in (value if isinstance(value, list) else [value])]
            if parameter["in"] == "path":
                path = path.replace("{" + parameter["name"] + "}", urllib.parse.quote(words[0], safe=""))
            elif parameter["in"] == "header":
                fields[parameter["name"]] = words[0]
            else:
                query += [(parameter["name"], word) for word in words]
        if arguments:
            raise TypeError(f"{name} takes no {', '.join(arguments)}")
        data = None
        if body is not None:
            content = operation["requestBody"]["content"]["application/json"]
            self.faults += [f"{name}: {fault}" for fault in self.description.faults(body, content["schema"], "body")]
            data, fields["Content-Type"] = json.dumps(body).encode(), "application/json"
        text = urllib.parse.urlencode(query, quote_via=urllib.parse.quote)
        return urllib.request.Request(self.url + path + ("?" + text if text else ""), data=data, headers=fields, method=method)

    def call(self, name, *, body=None, expect=None, **arguments):
        """Returns the JSON of the answer, or its text. A status that the operation does not name is a finding."""
        operation = self.description.operations[name][2]
        request = self.request(name, body, arguments)
        try:
            answer = urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=60)
        except urllib.error.HTTPError as error:
            answer = error
        status, kind, text = str(answer.status), answer.headers.get_content_type(), answer.read()
        self.called.add(name)
        declared = self.description.resolved(operation["responses"].get(status) or operation["responses"].get("default", {}))
        if status not in operation["responses"] and int(status) < 400:
            self.faults.append(f"{name}: the status {status} is not described")
        if expect is not None and int(status) != expect:
            self.faults.append(f"{name}: {status} in place of {expect}: {text[:200]!r}")
        content = declared.get("content", {})
        if text and content and kind not in content:
            self.faults.append(f"{name}: {kind} is not described for {status}")
        if kind not in ("application/json", "application/problem+json"):
            return text
        value = json.loads(text) if text else None
        schema = content.get(kind, {}).get("schema", {})
        self.faults += [f"{name} {status}: {fault}" for fault in self.description.faults(value, schema)]
        return value


def check_examples(description):
    """Every operation has an example of its request, or of its answer, and each matches its schema."""
    for name, (method, path, operation) in description.operations.items():
        found = 0
        for parameter in map(description.resolved, operation.get("parameters", [])):
            if "example" in parameter:
                found += 1
                yield from (
                    f"{name}: example: {fault}"
                    for fault in description.faults(parameter["example"], parameter["schema"], parameter["name"])
                )
        bodies = [operation.get("requestBody", {})] + [description.resolved(one) for one in operation["responses"].values()]
        for content in (one for body in bodies for one in body.get("content", {}).values()):
            examples = [content["example"]] if "example" in content else []
            examples += [description.resolved(one)["value"] for one in content.get("examples", {}).values()]
            for example in examples:
                found += 1
                yield from (f"{name}: example: {fault}" for fault in description.faults(example, content.get("schema", {}), "example"))
        if not found and "204" not in operation["responses"]:
            yield f"{name} ({method} {path}) has no example"


def use(client):
    """A session: what a program would do with the API."""
    for name in ("getDashboard", "getDescription", "getProxyFile", "getMetrics", "getSetupPage"):
        client.call(name, expect=200)
    client.getHealth(expect=204)
    for name in (
        "getReadiness getClients getStatus getStats listTraffic getConfiguration listConfigurationValues listEntities listIdentities "
        "listSyncLog getNetwork getStorage listConflicts"
    ).split():
        client.call(name, expect=200)
    requests = client.listRequests(limit=5, count=True, expect=200)
    client.getRequest(id=requests["items"][0]["id"], expect=200)
    stored = client.listCache(count=True, expect=200)["items"]
    client.listCache(path="no such text", offset=3, expect=200)
    client.getCacheEntry(url=stored[0]["url"], expect=200)
    client.explainRequest(url=stored[0]["url"], header=["Accept: */*"], expect=200)
    client.pin(url=stored[0]["url"], expect=200)
    client.unpin(url=stored[0]["url"], expect=204)
    client.prefetch(body={"urls": [stored[0]["url"]]}, expect=200)
    client.exportCache(expect=200)
    client.listShapes(expect=200)
    writes = client.listOperations(state="all", count=True, expect=200)
    assert writes["total"] == len(writes["items"]) >= 2, writes
    first, second = (one["id"] for one in writes["items"][:2])
    client.getOperation(id=first, expect=200)
    edited = client.editOperation(id=first, body={"body": {"title": "edited"}}, expect=201)
    client.retryOperation(id=edited["id"], expect=200)
    client.retryLane(lane=edited["lane"], expect=200)
    client.cancelOperation(id=edited["id"], expect=200)
    client.discardOperation(id=second, expect=204)
    client.exportOperations(format="jsonl", state="all", expect=200)
    client.flushOperations(expect=200)
    client.setNetwork(body={"mode": "offline", "upstream": "notes"}, expect=200)
    client.setNetwork(body={"mode": "auto", "upstream": None}, expect=200)
    client.cleanUp(body={"dryRun": True}, expect=200)
    client.scrub(body={"dryRun": True}, expect=200)
    client.push(expect=200)
    client.pull(expect=200)
    client.reload(expect=200)
    code = client.createDashboardCode(expect=201)["code"]
    assert client.exchangeDashboardCode(body={"code": code}, expect=200)["token"] == client.token
    client.createBackup(expect=200)
    client.purgeCache(url=[stored[0]["url"]], dryRun=True, expect=200)
    client.getOperation(id="absent", expect=404)
    client.resolveConflict(id="absent", body={"resolution": "mine"}, expect=404)
    client.undoConflict(id="absent", expect=404)
    client.getConflict(id="absent", expect=404)
    client.forgetIdentity(id="absent", expect=404)


def main():
    description = Description(sys.argv[1])
    client = Client(description, sys.argv[2], sys.argv[3])
    use(client)
    faults = client.faults + list(check_examples(description))
    for fault in faults:
        print(fault)
    print(f"{len(client.called)} of {len(description.operations)} operations called, {len(faults)} findings")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
