#!/usr/bin/env python3
"""Keeps JSON documents under /notes/ID, for the example task publish-answer."""

import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

notes = {}


class Board(BaseHTTPRequestHandler):
    def answer(self, status, body=b"{}"):
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if self.path == "/notes":
            self.answer(200)
        elif self.path in notes:
            self.answer(200, notes[self.path])
        else:
            self.answer(404)

    def do_PUT(self):
        notes[self.path] = self.rfile.read(int(self.headers["Content-Length"]))
        self.answer(201)

    def do_DELETE(self):
        notes.pop(self.path, None)
        self.answer(200)


HTTPServer(("localhost", int(sys.argv[1])), Board).serve_forever()
