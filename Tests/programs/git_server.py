"""Serves repositories in the current directory by git's own program, and large files; below /closed to ann: git_server.py PORT."""

import datetime
import http.server
import json
import os
import subprocess
import sys


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def content(self):
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        data = b""
        while size := int(self.rfile.readline(), 16):
            data += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return data

    def large_files(self, asked, repository):
        """Says where files are, or may be put, for eight seconds; git-lfs uses no address in its last five ones."""
        until = (datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=8)).isoformat()
        objects = []
        for one in asked["objects"]:
            address = f"http://{self.headers['Host']}{repository}/info/lfs/objects/{one['oid']}"
            action = {"href": address, "header": {"X-Asked": "1"}, "expires_at": until}
            known = os.path.exists("lfs/" + one["oid"])
            actions = {} if known == (asked["operation"] == "upload") else {asked["operation"]: action}
            objects.append({**one, "authenticated": True, "actions": actions})
        return json.dumps({"transfer": "basic", "objects": objects}).encode()

    def answer(self, status, kind, body=b""):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_PUT(self):
        os.makedirs("lfs", exist_ok=True)
        with open("lfs/" + self.path.rpartition("/")[2], "wb") as file:
            file.write(self.content())
        self.answer(200, "text/plain")

    def do_GET(self):
        path, _, query = self.path.partition("?")
        content = self.content()
        if path.startswith("/closed/"):
            path = path.removeprefix("/closed")
            if self.headers.get("Authorization") != "Basic YW5uOnNlY3JldA==":  # ann:secret
                self.send_response(401)
                self.send_header("WWW-Authenticate", 'Basic realm="pool"')
                self.send_header("Content-Length", "0")
                return self.end_headers()
        if path.endswith("/info/lfs/objects/batch"):
            return self.answer(200, "application/vnd.git-lfs+json", self.large_files(json.loads(content), path.partition("/info/")[0]))
        if "/info/lfs/objects/" in path:
            with open("lfs/" + path.rpartition("/")[2], "rb") as file:
                return self.answer(200, "application/octet-stream", file.read())
        if "/info/lfs/" in path:
            return self.answer(404, "application/vnd.git-lfs+json", b'{"message": "no locks"}')
        environment = {
            **os.environ,
            "GIT_PROJECT_ROOT": os.getcwd(),
            "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(content)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "REMOTE_USER": "a",
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
        }
        answer = subprocess.run(["git", "http-backend"], input=content, capture_output=True, env=environment).stdout
        head, _, body = answer.partition(b"\r\n\r\n")
        fields = [line.split(": ", 1) for line in head.decode().split("\r\n") if ": " in line]
        self.send_response(next((int(value.split()[0]) for name, value in fields if name == "Status"), 200))
        for name, value in fields:
            if name != "Status":
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET

    def log_message(self, *arguments):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
