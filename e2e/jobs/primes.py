"""Counts primes with all members of a group, whom they find by LWS_LEADER_ADDRESS, LWS_GROUP_SIZE and LWS_WORKER_INDEX.

The leader waits for its workers and then serves GET /primes/N: every member counts its share, the leader adds up.
"""

import json
import os
import socket
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from multiprocessing.connection import Client, Listener

LEADER = os.environ["LWS_LEADER_ADDRESS"]
SIZE = int(os.environ["LWS_GROUP_SIZE"])
RANK = int(os.environ["LWS_WORKER_INDEX"])
PORT = 5000
KEY = b"group"


def count(limit, rank):
    """The primes below `limit` among the numbers that are this member's share."""
    share = range(2 + rank, limit, SIZE)
    return sum(all(number % divisor for divisor in range(2, int(number**0.5) + 1)) for number in share)


def answer(limit, rank):
    return {"rank": rank, "host": socket.gethostname(), "primes": count(limit, rank)}


def lead():
    listener = Listener(("", PORT), authkey=KEY)
    workers = [listener.accept() for _ in range(SIZE - 1)]

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            limit = int(self.path.rpartition("/")[2])
            for worker in workers:
                worker.send(limit)
            answers = [answer(limit, RANK)] + [worker.recv() for worker in workers]
            body = json.dumps({"primes": sum(one["primes"] for one in answers), "members": answers}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    HTTPServer(("", 8080), Handler).serve_forever()


def work():
    while True:
        try:
            leader = Client((LEADER, PORT), authkey=KEY)
            break
        except OSError:
            time.sleep(0.2)
    while True:
        leader.send(answer(leader.recv(), RANK))


if RANK == 0:
    lead()
else:
    work()
