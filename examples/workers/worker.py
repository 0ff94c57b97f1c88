#!/usr/bin/env python3
"""A worker in Python, with the standard library only: it doubles a number, or
does the work of the desk in a rental of cars (test/workers).

The node's stream of events tells it when there may be a job. What is lost of
that does no harm, as it asks now and then besides.

MUTIRAO_URL is the node's API, MUTIRAO_TOKEN a token with the scope
worker:APPLICATION. With --once it ends after one job.

usage: worker.py APPLICATION [--once]
"""
import http.client
import json
import os
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

URL = os.environ["MUTIRAO_URL"].rstrip("/")
TOKEN = os.environ["MUTIRAO_TOKEN"]
PATIENCE = 120  # seconds for which a result is brought to a node that does not answer
WAKE = 30  # seconds after which it asks for a job though it was told of none


class Refused(Exception):
    """The node said no. To come again with the same would not help."""

    def __init__(self, status, text):
        try:
            reply = json.loads(text)
            said = reply["message"] + (" (%s)" % reply["hint"] if "hint" in reply else "")
        except (ValueError, KeyError, TypeError):
            reply, said = {}, "HTTP status %d" % status
        super().__init__(said)
        self.message = reply.get("message", said)
        # What was brought is wrong. Every other refusal is about the job, which is not ours any more.
        self.wrong = status in (400, 409, 413)


class Unheard(Exception):
    """The node, or the partner that holds the job, cannot be asked now. It may be later."""


def ask(path, body):
    """Return the reply, or None where there is none."""
    request = urllib.request.Request(
        URL + path,
        json.dumps(body).encode(),
        {"Authorization": "Bearer " + TOKEN, "Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=90) as reply:
            text = reply.read()
            return json.loads(text) if text else None
    except urllib.error.HTTPError as no:
        if no.code >= 500:
            raise Unheard("HTTP status %d" % no.code) from no
        raise Refused(no.code, no.read()) from no
    except (OSError, http.client.HTTPException) as error:
        raise Unheard(str(error)) from error


def told(application):
    """Wait until there may be a job. False: the node does not tell, so that has to be waited for in another way."""
    request = urllib.request.Request(
        URL + "/v1/jobs/events?" + urllib.parse.urlencode({"application": application}),
        headers={"Authorization": "Bearer " + TOKEN},
    )
    until = time.monotonic() + WAKE
    try:
        # Something comes every 15 seconds, if only a sign of life.
        with urllib.request.urlopen(request, timeout=WAKE) as stream:
            for line in stream:
                if line.startswith(b"data:") or time.monotonic() > until:
                    return True
    except (OSError, http.client.HTTPException):
        pass
    return False


def bring(path, body):
    """Say how the job ended, again and again while nobody hears it. What is brought twice counts once."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            return ask(path, body)
        except Unheard:
            if time.monotonic() > until:
                raise
            time.sleep(1)


def double(given):
    return {"doubled": 2 * given["number"]}


# What is done for which task; for any other a number is doubled.
WORK = {
    "open": lambda given: {"status": "started"},
    "papers": lambda given: {"papers": True},
    "inspect": lambda given: {"out": False, "fines": 10},
}


def do(job):
    """The work itself: inputs in, outputs out."""
    return WORK.get(job["task"], double)(job["input"])


def beat(lease, done):
    """Keep the lease until the work is done."""
    while not done.wait(10):
        try:
            ask("/v1/leases/%s/heartbeat" % lease, {})
        except Refused:
            return  # the job is not ours any more: its result will be refused
        except Unheard:
            pass  # the lease may be good still when somebody can be asked


def work(job):
    """Do a job, bring its result and say on standard error what became of it."""
    lease = "/v1/leases/" + job["lease"]
    try:
        result = json.dumps({"outputs": do(job)})
    except Exception as error:  # whatever goes wrong with the work fails the task
        why = repr(error)
    else:
        try:
            bring(lease + "/complete", json.loads(result))
            return "done"
        except Refused as no:
            if not no.wrong:
                return "its result was not taken: %s" % no
            why = "its result was refused: " + no.message.removeprefix("the result was not taken: ")
    # The task fails with a reason at once, or is tried again: otherwise it would run into its time-out.
    try:
        bring(lease + "/fail", {"reason": why[:2000]})
        return "failed: " + why
    except Refused as no:
        return "%s, which was not taken: %s" % (why, no)


def main():
    application, once = sys.argv[1], "--once" in sys.argv
    wait = "0s"
    while True:
        try:
            job = ask("/v1/jobs/take", {"application": application, "worker": "python", "wait": wait})
        except Refused as no:
            sys.exit("no job can be taken: %s" % no)
        except Unheard:
            time.sleep(1)
            continue
        if job is None:
            wait = "0s" if told(application) else "30s"
            continue
        done = threading.Event()
        threading.Thread(target=beat, args=(job["lease"], done), daemon=True).start()
        try:
            end = work(job)
        except Unheard as error:  # another worker gets the job when the lease is over
            end = "nobody could be told how it ended: %s" % error
        done.set()
        print("%s of %s: %s" % (job["task"], job["instance"], end), file=sys.stderr)
        if once:
            return


main()
