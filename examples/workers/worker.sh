#!/bin/sh
# A worker in shell, with curl and nothing else: it says how long a text is.
#
# MUTIRAO_URL is the node's API, MUTIRAO_TOKEN a token with the scope
# worker:APPLICATION. With --once it ends after one job.
#
# usage: worker.sh APPLICATION [--once]
set -u
application=$1
once=${2:-}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# ask PATH BODY: the reply is in $folder/reply, its header in $folder/head.
ask() {
  curl -sS --max-time 90 -o "$folder/reply" -D "$folder/head" -w '%{http_code}' \
    -H "Authorization: Bearer $MUTIRAO_TOKEN" -H 'Content-Type: application/json' \
    -d "$2" "$MUTIRAO_URL$1"
}

# do: the work itself, with the job as JSON on standard input. It writes outputs as JSON.
do_job() {
  text=$(sed -n 's/.*"text":"\([^"]*\)".*/\1/p')
  printf '{"length": %d}' "${#text}"
}

while :; do
  status=$(ask /v1/jobs/take "{\"application\": \"$application\", \"worker\": \"shell\", \"wait\": \"30s\"}")
  case $status in
  200) ;;
  204) continue ;;
  4*) cat "$folder/reply" >&2; exit 1 ;;
  *) sleep 1; continue ;;
  esac
  lease=$(tr -d '\r' <"$folder/head" | sed -n 's/^[Mm]utirao-[Ll]ease: //p')
  cp "$folder/reply" "$folder/job"
  # Signs of life while the work goes on.
  (while sleep 10; do
    curl -s -o /dev/null -H "Authorization: Bearer $MUTIRAO_TOKEN" -H 'Content-Type: application/json' \
      -d '{}' "$MUTIRAO_URL/v1/leases/$lease/heartbeat"
  done) &
  beats=$!
  if outputs=$(do_job <"$folder/job"); then
    ask "/v1/leases/$lease/complete" "{\"outputs\": ${outputs:-{\}}}" >/dev/null
  else
    ask "/v1/leases/$lease/fail" '{"reason": "the script failed"}' >/dev/null
  fi
  kill "$beats" 2>/dev/null
  [ "$once" = --once ] && exit 0
done
