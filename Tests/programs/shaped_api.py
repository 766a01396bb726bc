"""APIs of several shapes in one server, each with the paths, bodies and statuses of its kind: shaped_api.py PORT.

/nested/projects/{project}/tasks/{id}, /rails/issues/{id}.json, /django/notes/{id}/, /odata/Products({id})/Parts({part}),
/rest/products?id=eq.{id}, /me, /jsonapi/articles/{id}, /hal/orders/{id}, /fhir/Patient/{id}. GET /log lists the writes.
"""

import http.server
import json
import re
import sys
import threading
from urllib.parse import parse_qsl, unquote, urlsplit

LOCK = threading.RLock()
LOG = []


class Refused(Exception):
    def __init__(self, status):
        super().__init__(status)
        self.status = status


class Table:
    """The rows of one collection, by id."""

    def __init__(self, *rows):
        self.rows, self.last = {}, 0
        for row in rows:
            self.add(row)

    def add(self, members):
        self.last += 1
        row = {"id": self.last, **{name: value for name, value in members.items() if name not in ("id", "rev")}, "rev": 1}
        self.rows[self.last] = row
        return row

    def find(self, text):
        row = self.rows.get(int(text)) if re.fullmatch(r"\d+", text) else None
        if row is None:
            raise Refused(404)
        return row

    def change(self, row, members, whole=False):
        if whole:
            for name in [name for name in row if name not in ("id", "rev")]:
                del row[name]
        row.update({name: value for name, value in members.items() if name not in ("id", "rev")})
        for name in [name for name, value in row.items() if value is None]:
            del row[name]
        row["rev"] += 1
        return row


TABLES = {
    "projects": Table({"name": "one"}, {"name": "two"}),
    "tasks/1": Table({"title": "a"}),
    "tasks/2": Table({"title": "b"}),
    "issues": Table({"subject": "a"}, {"subject": "b"}),
    "relations/1": Table({"issue_to_id": 2}),
    "notes": Table({"title": "a"}),
    "Products": Table({"Name": "a"}, {"Name": "b"}),
    "Parts/1": Table({"Name": "bolt"}),
    "products": Table({"name": "a", "state": "open"}, {"name": "b", "state": "done"}),
    "me": Table({"name": "Ada", "theme": "dark"}),
    "articles": Table({"title": "a", "body": "x"}, {"title": "b", "body": "y"}),
    "orders": Table({"total": 3}, {"total": 4}),
    "Patient": Table({"name": [{"family": "a"}], "active": True}),
}


class Shape:
    """The form of one API: what its items, lists and answers look like."""

    type = "application/json"
    created, changed, deleted = 201, 200, 204

    def __init__(self, collection, item, table):
        self.paths = re.compile(collection + "$"), re.compile(item + "$")
        self.table = table

    def item(self, row, names):
        return dict(row)

    def list(self, rows, names):
        return rows

    def members(self, body):
        return body

    def place(self, row, names):
        return None

    def fields(self, row):
        return {"ETag": f'"{row["id"]}-{row["rev"]}"'}

    def deletion(self, row):
        return None

    def rows(self, names):
        name = self.table.format(**names)
        if name not in TABLES and not self.parent(names):
            raise Refused(404)
        return TABLES.setdefault(name, Table())

    def parent(self, names):
        return True

    def id(self, names):
        return unquote(names["id"]).strip("'")


class Nested(Shape):
    def place(self, row, names):
        return f"/nested/projects/{names['project']}/tasks/{row['id']}" if "project" in names else f"/nested/projects/{row['id']}"

    def parent(self, names):
        return TABLES["projects"].find(names["project"])


class Rails(Shape):
    changed = 204

    def __init__(self, collection, item, table, word):
        super().__init__(collection, item, table)
        self.word = word

    def item(self, row, names):
        return {self.word: dict(row)}

    def list(self, rows, names):
        return {self.word + "s": rows, "total_count": len(rows), "offset": 0, "limit": 25}

    def members(self, body):
        return body[self.word]

    def fields(self, row):
        return {}

    def place(self, row, names):
        return f"/rails/issues/{row['id']}.json"


class Django(Shape):
    def list(self, rows, names):
        return {"count": len(rows), "next": None, "previous": None, "results": rows}

    def fields(self, row):
        return {}


class OData(Shape):
    type = "application/json;odata.metadata=minimal"
    changed = 204

    def item(self, row, names):
        named = {name: value for name, value in row.items() if name not in ("id", "rev")}
        return {"@odata.context": "$metadata#Products/$entity", "@odata.etag": f'W/"{row["rev"]}"', "ID": row["id"], **named}

    def list(self, rows, names):
        items = [{name: value for name, value in self.item(row, names).items() if name != "@odata.context"} for row in rows]
        return {"@odata.context": "$metadata#Products", "@odata.count": len(rows), "value": items}

    def members(self, body):
        return {name: value for name, value in body.items() if not name.startswith("@odata.") and name != "ID"}

    def fields(self, row):
        return {"ETag": f'W/"{row["rev"]}"', "OData-Version": "4.0"}

    def place(self, row, names):
        return f"/odata/Products({row['id']})" if "product" not in names else f"/odata/Products({names['product']})/Parts({row['id']})"


class JSONAPI(Shape):
    type = "application/vnd.api+json"

    def item(self, row, names):
        return {"data": self.resource(row), "links": {"self": f"/jsonapi/articles/{row['id']}"}}

    def resource(self, row):
        attributes = {name: value for name, value in row.items() if name not in ("id", "rev", "author")}
        author = {"author": {"data": row["author"]}} if "author" in row else {}
        return {"type": "articles", "id": str(row["id"]), "attributes": attributes, "relationships": author}

    def list(self, rows, names):
        return {"data": [self.resource(row) for row in rows], "meta": {"total": len(rows)}}

    def members(self, body):
        data = body["data"]
        if data.get("type") != "articles":
            raise Refused(409)
        related = {name: value["data"] for name, value in data.get("relationships", {}).items()}
        return {**data.get("attributes", {}), **related}

    def place(self, row, names):
        return f"/jsonapi/articles/{row['id']}"

    def fields(self, row):
        return {}


class HAL(Shape):
    type = "application/hal+json"
    deleted = 200

    def item(self, row, names):
        return {**row, "_links": {"self": {"href": f"/hal/orders/{row['id']}"}}}

    def list(self, rows, names):
        orders = [self.item(row, names) for row in rows]
        return {"_links": {"self": {"href": "/hal/orders"}}, "total": len(rows), "_embedded": {"orders": orders}}

    def members(self, body):
        return {name: value for name, value in body.items() if name not in ("_links", "_embedded")}

    def deletion(self, row):
        return {"deleted": True}


class FHIR(Shape):
    type = "application/fhir+json"

    def item(self, row, names):
        named = {name: value for name, value in row.items() if name not in ("id", "rev")}
        return {"resourceType": "Patient", "id": str(row["id"]), "meta": {"versionId": str(row["rev"])}, **named}

    def list(self, rows, names):
        entries = [{"fullUrl": f"/fhir/Patient/{row['id']}", "resource": self.item(row, names)} for row in rows]
        return {"resourceType": "Bundle", "type": "searchset", "total": len(rows), "entry": entries}

    def members(self, body):
        if body.get("resourceType") != "Patient":
            raise Refused(422)
        return {name: value for name, value in body.items() if name not in ("resourceType", "id", "meta")}

    def place(self, row, names):
        return f"/fhir/Patient/{row['id']}/_history/{row['rev']}"

    def fields(self, row):
        return {"ETag": f'W/"{row["rev"]}"'}


class Single(Shape):
    def id(self, names):
        return "1"

    def item(self, row, names):
        return {name: value for name, value in row.items() if name != "rev"}


SHAPES = [
    Nested("/nested/projects", "/nested/projects/(?P<id>[^/]+)", "projects"),
    Nested("/nested/projects/(?P<project>[^/]+)/tasks", "/nested/projects/(?P<project>[^/]+)/tasks/(?P<id>[^/]+)", "tasks/{project}"),
    Rails(r"/rails/issues\.json", r"/rails/issues/(?P<id>[^/.]+)\.json", "issues", "issue"),
    Rails(
        r"/rails/issues/(?P<issue>[^/]+)/relations\.json",
        r"/rails/issues/(?P<issue>[^/]+)/relations/(?P<id>[^/.]+)\.json",
        "relations/{issue}",
        "relation",
    ),
    Django("/django/notes/", "/django/notes/(?P<id>[^/]+)/", "notes"),
    OData("/odata/Products", r"/odata/Products\((?P<id>[^/)]+)\)", "Products"),
    OData(
        r"/odata/Products\((?P<product>[^/)]+)\)/Parts",
        r"/odata/Products\((?P<product>[^/)]+)\)/Parts\((?P<id>[^/)]+)\)",
        "Parts/{product}",
    ),
    Single("/no-list", "/me", "me"),
    JSONAPI("/jsonapi/articles", "/jsonapi/articles/(?P<id>[^/]+)", "articles"),
    HAL("/hal/orders", "/hal/orders/(?P<id>[^/]+)", "orders"),
    FHIR("/fhir/Patient", "/fhir/Patient/(?P<id>[^/]+)", "Patient"),
]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, status, value=None, kind="application/json", **fields):
        body = b"" if value is None else json.dumps(value).encode()
        self.send_response(status)
        if value is not None:
            self.send_header("Content-Type", kind)
        if status != 204:
            self.send_header("Content-Length", str(len(body)))
        for name, text in fields.items():
            self.send_header(name.replace("_", "-"), text)
        self.end_headers()
        if self.command != "HEAD" and status != 204:
            self.wfile.write(body)

    def handle_any(self):
        length = int(self.headers.get("Content-Length") or 0)
        data = self.rfile.read(length)
        body = json.loads(data) if data else None
        with LOCK:
            path = urlsplit(self.path).path
            if path == "/log":
                return self.answer(200, LOG)
            if self.command not in ("GET", "HEAD", "OPTIONS"):
                LOG.append({"method": self.command, "target": self.path, "body": body, "type": self.headers.get("Content-Type")})
            try:
                if path == "/rest/products":
                    return self.rest(body)
                return self.shaped(path, body)
            except Refused as refused:
                return self.answer(refused.status, {"error": refused.status})

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = handle_any

    def shaped(self, path, body):
        for shape in SHAPES:
            if found := shape.paths[0].match(path):
                return self.collection(shape, found.groupdict(), body)
            if found := shape.paths[1].match(path):
                return self.one(shape, found.groupdict(), body)
        if path + "/" in ("/django/notes/",) or re.fullmatch(r"/django/notes/\d+", path):
            return self.answer(301, Location=path + "/")
        raise Refused(404)

    def collection(self, shape, names, body):
        table = shape.rows(names)
        if self.command == "POST":
            row = table.add(shape.members(body))
            place = shape.place(row, names)
            fields = {**shape.fields(row), **({"Location": place} if place else {})}
            return self.answer(shape.created, shape.item(row, names), shape.type, **fields)
        if self.command not in ("GET", "HEAD"):
            raise Refused(405)
        return self.answer(200, shape.list(list(table.rows.values()), names), shape.type, Cache_Control="max-age=0")

    def one(self, shape, names, body):
        table = shape.rows(names)
        row = table.find(shape.id(names))
        if self.command in ("GET", "HEAD"):
            return self.answer(200, shape.item(row, names), shape.type, Cache_Control="max-age=0", **shape.fields(row))
        condition = self.headers.get("If-Match")
        if condition and condition != shape.fields(row).get("ETag"):
            raise Refused(412)
        if self.command in ("PUT", "PATCH"):
            table.change(row, shape.members(body), whole=self.command == "PUT")
            value = None if shape.changed == 204 else shape.item(row, names)
            return self.answer(shape.changed, value, shape.type, **shape.fields(row))
        if self.command != "DELETE":
            raise Refused(405)
        del table.rows[row["id"]]
        for name in [name for name in TABLES if name in (f"tasks/{row['id']}", f"relations/{row['id']}") and "project" not in names]:
            del TABLES[name]
        return self.answer(shape.deleted, shape.deletion(row), shape.type)

    def rest(self, body):
        """Rows that the query names, as PostgREST has them."""
        table = TABLES["products"]
        filters = [(name, text) for name, text in parse_qsl(urlsplit(self.path).query) if name not in ("select", "order", "limit")]
        if any(not text.startswith("eq.") for _, text in filters):
            raise Refused(400)
        rows = [row for row in table.rows.values() if all(str(row.get(name)) == text[3:] for name, text in filters)]
        shown = "return=representation" in self.headers.get("Prefer", "")
        if self.command == "POST":
            row = table.add(body)
            return self.answer(201, [row] if shown else None, Location=f"/rest/products?id=eq.{row['id']}")
        if self.command in ("GET", "HEAD"):
            if "vnd.pgrst.object" in self.headers.get("Accept", ""):
                if len(rows) != 1:
                    raise Refused(406)
                return self.answer(200, rows[0], "application/vnd.pgrst.object+json", Vary="Accept", Cache_Control="max-age=0")
            return self.answer(200, rows, Vary="Accept", Cache_Control="max-age=0")
        for row in rows:
            if self.command == "PATCH":
                table.change(row, body)
            elif self.command == "DELETE":
                del table.rows[row["id"]]
            else:
                raise Refused(405)
        return self.answer(200 if shown else 204, rows if shown else None)

    def log_message(self, *arguments):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
