#!/usr/bin/env python3
"""A worker in Python, with the standard library only: it doubles a number.

MUTIRAO_URL is the node's API, MUTIRAO_TOKEN a token with the scope
worker:APPLICATION. With --once it ends after one job.

usage: worker.py APPLICATION [--once]
"""
import json
import os
import sys
import threading
import time
import urllib.error
import urllib.request

URL = os.environ["MUTIRAO_URL"].rstrip("/")
TOKEN = os.environ["MUTIRAO_TOKEN"]


def ask(path, body):
    """Return the reply, or None where there is none."""
    request = urllib.request.Request(
        URL + path,
        json.dumps(body).encode(),
        {"Authorization": "Bearer " + TOKEN, "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=90) as reply:
        text = reply.read()
        return json.loads(text) if text else None


def do(job):
    """The work itself: inputs in, outputs out."""
    return {"doubled": 2 * job["input"]["number"]}


def beat(lease, done):
    """Keep the lease until the work is done."""
    while not done.wait(10):
        try:
            ask("/v1/leases/%s/heartbeat" % lease, {})
        except urllib.error.HTTPError:
            return  # the job is not ours any more: its result will be refused
        except OSError:
            pass  # the node cannot be reached now


def main():
    application, once = sys.argv[1], "--once" in sys.argv
    while True:
        try:
            job = ask("/v1/jobs/take", {"application": application, "worker": "python", "wait": "30s"})
        except urllib.error.HTTPError as no:
            if no.code < 500:
                sys.exit(no.read().decode())
            job = None
            time.sleep(1)
        except OSError:
            job = None
            time.sleep(1)
        if job is None:
            continue
        lease, done = job["lease"], threading.Event()
        threading.Thread(target=beat, args=(lease, done), daemon=True).start()
        try:
            outputs = do(job)
        except Exception as error:  # whatever goes wrong with the work fails the task
            ask("/v1/leases/%s/fail" % lease, {"reason": repr(error)})
        else:
            ask("/v1/leases/%s/complete" % lease, {"outputs": outputs})
        done.set()
        if once:
            return


main()
