"""Adds up one number of each node, as collective libraries do: all meet at a master address, and all get the sum."""

import argparse
import time
from multiprocessing.connection import Client, Listener

arguments = argparse.ArgumentParser()
arguments.add_argument("--master-addr", required=True)
arguments.add_argument("--master-port", type=int, default=29500)
arguments.add_argument("--nnodes", type=int, required=True)
arguments.add_argument("--node-rank", type=int, required=True)
given = arguments.parse_args()

own = 10**given.node_rank
if given.node_rank == 0:
    listener = Listener(("", given.master_port))
    others = [listener.accept() for _ in range(given.nnodes - 1)]
    total = own + sum(other.recv() for other in others)
    for other in others:
        other.send(total)
else:
    while True:
        try:
            master = Client((given.master_addr, given.master_port))
            break
        except OSError:
            time.sleep(0.2)
    master.send(own)
    total = master.recv()

print(f"rank {given.node_rank} of {given.nnodes}: sum {total}", flush=True)
while True:
    time.sleep(60)
