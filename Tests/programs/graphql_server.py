"""A GraphQL server with notes in the file notes.json of the current directory: graphql_server.py PORT.

A mutation that comes again with the same Idempotency-Key is answered as before, and has no second effect.
"""

import http.server
import json
import os
import sys
import threading

import graphql

SCHEMA = graphql.build_schema("""
    type Note { id: ID! text: String! }
    type Query { notes: [Note!]! note(id: ID!): Note }
    type Mutation { add(text: String!): Note put(id: ID!, text: String!): Note remove(id: ID!): Boolean }
    """)


class Notes:
    """The root value: a list of pairs, so that a mutation that arrives twice is seen."""

    def __init__(self):
        self.lock = threading.Lock()
        self.rows = []
        self.answers = {}
        if os.path.exists("notes.json"):
            with open("notes.json", encoding="utf-8") as file:
                self.rows, self.answers = json.load(file)

    def save(self):
        """Stores notes and answers together: whenever the server ends, a mutation and the answer to its key are both there, or neither."""
        with open("notes.json.new", "w", encoding="utf-8") as file:
            json.dump([self.rows, self.answers], file)
        os.replace("notes.json.new", "notes.json")

    def notes(self, info):
        return [{"id": key, "text": text} for key, text in self.rows]

    def note(self, info, id):
        return next((row for row in self.notes(info) if row["id"] == id), None)

    def add(self, info, text):
        self.rows.append([f"n{len(self.rows)}", text])
        return {"id": self.rows[-1][0], "text": text}

    def put(self, info, id, text):
        self.rows = [row for row in self.rows if row[0] != id] + [[id, text]]
        return {"id": id, "text": text}

    def remove(self, info, id):
        count = len(self.rows)
        self.rows = [row for row in self.rows if row[0] != id]
        return len(self.rows) < count


NOTES = Notes()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.answer(200, {"data": None})

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        key = self.headers.get("Idempotency-Key")
        with NOTES.lock:
            if key in NOTES.answers:
                return self.answer(200, NOTES.answers[key])
            result = graphql.graphql_sync(
                SCHEMA,
                asked["query"],
                root_value=NOTES,
                variable_values=asked.get("variables"),
                operation_name=asked.get("operationName"),
            )
            if key:
                NOTES.answers[key] = result.formatted
            NOTES.save()
        self.answer(200, result.formatted)

    def answer(self, status, value):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
