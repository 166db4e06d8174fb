"""A small Hugging Face Hub on this machine: enough of its HTTP interface for one dataset.

The real client library talks to it, so what is tested is what goes over the wire.
"""

import base64
import hashlib
import json
import re
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import unquote, urlsplit


class FakeHub:
    """Repositories by name: path -> bytes. One revision each."""

    def __init__(self):
        self.repositories: dict[str, dict[str, bytes]] = {}
        self.requests: list[str] = []
        self.url = ""

    def commit(self, name: str) -> str:
        content = sorted(
            (p, hashlib.sha1(b).hexdigest()) for p, b in self.repositories[name].items()
        )
        return hashlib.sha1(repr(content).encode()).hexdigest()


def blob_id(content: bytes) -> str:
    """Git's name of a file."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def _handler(hub: FakeHub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def answer(self, content, status=200, headers=None):
            body = content if isinstance(content, bytes) else json.dumps(content).encode()
            self.send_response(status)
            for key, value in (headers or {}).items():
                self.send_header(key, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def handle_any(self):
            length = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(length)
            path = unquote(urlsplit(self.path).path)
            hub.requests.append(f"{self.command} {path}")
            if path == "/api/repos/create":
                wanted = json.loads(body)
                return self.create(f"{wanted['organization']}/{wanted['name']}")
            if path == "/api/validate-yaml":
                return self.answer({"errors": [], "warnings": []})
            about = re.fullmatch(r"/api/datasets/(\w+/[\w-]+)(?:/(\w+)/(\w+))?", path)
            if about and about[1] in hub.repositories:
                return self.repository(about[1], about[2], body)
            file = re.fullmatch(r"/datasets/(\w+/[\w-]+)/resolve/(\w+)/(.+)", path)
            if file and file[3] in hub.repositories.get(file[1], {}):
                content = hub.repositories[file[1]][file[3]]
                tag = {"ETag": f'"{blob_id(content)}"', "X-Repo-Commit": hub.commit(file[1])}
                return self.answer(content, headers=tag)
            missing = {"X-Error-Code": "RepoNotFound", "X-Error-Message": "Repository not found"}
            return self.answer({"error": "Repository not found"}, 404, missing)

        def create(self, name):
            status = 409 if name in hub.repositories else 200
            hub.repositories.setdefault(name, {})
            return self.answer({"url": f"{hub.url}/datasets/{name}", "id": name}, status)

        def repository(self, name, what, body):
            files = hub.repositories[name]
            if what in (None, "revision"):
                siblings = [{"rfilename": path} for path in files]
                info = {"id": name, "sha": hub.commit(name), "siblings": siblings}
                return self.answer(
                    info | {"private": False, "tags": [], "downloads": 0, "likes": 0}
                )
            if what == "tree":
                entries = [
                    {"type": "file", "path": path, "size": len(data), "oid": blob_id(data)}
                    for path, data in files.items()
                ]
                return self.answer(entries)
            if what == "preupload":
                asked = [entry["path"] for entry in json.loads(body)["files"]]
                modes = [{"path": p, "uploadMode": "regular", "shouldIgnore": False} for p in asked]
                return self.answer({"files": modes})
            for line in map(json.loads, body.splitlines()):
                if line["key"] == "file":
                    files[line["value"]["path"]] = base64.b64decode(line["value"]["content"])
                elif line["key"] == "deletedFile":
                    del files[line["value"]["path"]]
            commit = hub.commit(name)
            url = f"{hub.url}/datasets/{name}/commit/{commit}"
            return self.answer({"commitUrl": url, "commitOid": commit, "success": True})

        do_GET = do_HEAD = do_POST = do_PUT = handle_any

    return Handler


@contextmanager
def serving():
    hub = FakeHub()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(hub))
    hub.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
