"""Two hospitals fit one model, and no row leaves either of them.

Each hospital is a process of its own that serves ``designs.Site`` over HTTP. The coordinator knows
their addresses alone, solves the joint problem with its proof, and compares with the pooled rows,
which only an example can have.

    python examples/sites_over_http.py
"""

from __future__ import annotations

import io
import json
import multiprocessing
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any
from urllib.request import Request, urlopen

import numpy as np

from atomlearn import solve
from atomlearn.designs import Site, Sites


def packed(message: dict[str, Any]) -> bytes:
    """Return a question or an answer as bytes that hold arrays and JSON, and nothing to run."""
    arrays = {name: part for name, part in message.items() if isinstance(part, np.ndarray)}
    rest = {name: part for name, part in message.items() if name not in arrays}
    buffer = io.BytesIO()
    np.savez(buffer, rest=np.array(json.dumps(rest)), **arrays)
    return buffer.getvalue()


def unpacked(data: bytes) -> dict[str, Any]:
    """Return the question or the answer."""
    with np.load(io.BytesIO(data), allow_pickle=False) as held:
        rest = json.loads(str(held["rest"]))
        return rest | {name: held[name] for name in held.files if name != "rest"}


def rows_of(hospital: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of a hospital: here drawn, elsewhere read from its own disk."""
    rng = np.random.default_rng(hospital)
    X = rng.standard_normal((3000 + 2000 * hospital, 200))
    risk = X[:, :4] @ np.array([1.0, -0.7, 0.5, 0.4]) - 0.5
    return X, np.where(rng.uniform(size=len(X)) < 1 / (1 + np.exp(-risk)), 1.0, -1.0)


def hospital(number: int, port: Any) -> None:
    """Serve the site of a hospital, on a free port of this machine."""
    X, y = rows_of(number)
    site = Site(X, y, least_rows=50)

    class Answering(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            question = self.rfile.read(int(self.headers["Content-Length"]))
            try:
                status, answer = 200, packed(site(unpacked(question)))
            except (ValueError, TypeError, IndexError) as error:
                status, answer = 400, str(error).encode()
            self.send_response(status)
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *given: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Answering)
    port.send(server.server_port)
    server.serve_forever()


def over_http(address: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Return the transport to a site."""

    def ask(question: dict[str, Any]) -> dict[str, Any]:
        with urlopen(Request(address, data=packed(question)), timeout=60) as answer:
            return unpacked(answer.read())

    return ask


def main() -> None:
    """Start two hospitals, solve, and compare."""
    addresses, servers = [], []
    for number in range(2):
        here, there = multiprocessing.Pipe()
        server = multiprocessing.Process(target=hospital, args=(number, there), daemon=True)
        server.start()
        servers.append(server)
        addresses.append(f"http://127.0.0.1:{here.recv()}")
    sites = Sites([over_http(address) for address in addresses])
    found = solve(sites, None, loss="logistic", alpha=0.004)
    print(found)
    parts = [rows_of(number) for number in range(2)]
    X, y = (np.concatenate(part) for part in zip(*parts, strict=True))
    pooled = solve(X, y, loss="logistic", alpha=0.004)
    difference = abs(found.objective - pooled.objective) / pooled.objective
    print(f"pooled rows: {pooled.objective:.10g}, relative difference {difference:.1e}")
    for server in servers:
        server.terminate()


if __name__ == "__main__":
    main()
