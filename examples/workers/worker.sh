#!/bin/sh
# A worker in shell, with curl and nothing else: it says how long a text is, or hands
# out a car (test/workers).
#
# Each request for a job waits until there is one, for half a minute at most. worker.py is told by a stream of events.
#
# MUTIRAO_URL is the node's API, MUTIRAO_TOKEN a token with the scope
# worker:APPLICATION. With --once it ends after one job.
#
# usage: worker.sh APPLICATION [--once]
set -u
application=$1
once=${2:-}
folder=$(mktemp -d)
beats=
trap 'rm -rf "$folder"; [ -n "$beats" ] && kill "$beats" 2>/dev/null' EXIT
trap 'exit 1' INT TERM

# ask PATH BODY: the reply is in $folder/reply, its header in $folder/head. It prints the
# status, which is 000 where the node cannot be reached.
ask() {
  : >"$folder/reply"
  curl -sS --max-time 90 -o "$folder/reply" -D "$folder/head" -w '%{http_code}' \
    -H "Authorization: Bearer $MUTIRAO_TOKEN" -H 'Content-Type: application/json' \
    -d "$2" "$MUTIRAO_URL$1"
}

# bring PATH BODY: says how the job ended, and sets $status. Where the node, or the partner
# that holds the job, cannot be asked, it says so again for two minutes: what is brought
# twice counts once.
bring() {
  tries=0
  while status=$(ask "$1" "$2"); [ "$status" = 000 ] || [ "$status" -ge 500 ]; do
    tries=$((tries + 1))
    [ "$tries" -ge 120 ] && return
    sleep 1
  done
}

# said: what the node answered, as JSON has it between quotes.
said() {
  sed -nE 's/.*"message":"(([^"\\]|\\.)*)".*/\1/p' "$folder/reply" | grep . || echo "HTTP status $status"
}

# field NAME: a text of the job, as JSON has it between quotes: so it can be written into other JSON as it is.
field() { LC_ALL=C sed -nE "s/.*\"$1\":\"(([^\"\\\\]|\\\\.)*)\".*/\1/p" "$folder/job"; }

# characters TEXT: how many a text has that JSON has so between quotes. An escape is one, also one of two parts, and
# of the bytes of a character only the first counts.
characters() {
  printf '%s' "$1" | LC_ALL=C sed -E 's/\\(u[dD][89abAB]..\\u....|u....|.)/x/g' | LC_ALL=C tr -d '\200-\277' | wc -c
}

# do_job: the work itself. It writes outputs as JSON; the task fails where it does not end well.
do_job() {
  case $(field task) in
  hand)
    case $(field car) in
    wreck) return 1 ;;
    flat) [ -e "$folder/charged" ] || { : >"$folder/charged" && return 1; } ;; # when it is tried again it goes
    esac
    printf '{"out": true, "plate": "%s-1"}' "$(field car)"
    ;;
  *)
    text=$(field text)
    printf '{"length": %d}' "$(characters "$text")"
    ;;
  esac
}

while :; do
  status=$(ask /v1/jobs/take "{\"application\": \"$application\", \"worker\": \"shell\", \"wait\": \"30s\"}")
  case $status in
  200) ;;
  204) continue ;;
  4*) printf "%s\n" "no job can be taken: $(said)" >&2; exit 1 ;;
  *) sleep 1; continue ;;
  esac
  lease=$(tr -d '\r' <"$folder/head" | sed -n 's/^[Mm]utirao-[Ll]ease: //p')
  cp "$folder/reply" "$folder/job"
  # Signs of life while the work goes on: none once this script is gone ($$ is its process), or the job is over.
  (while sleep 10 && kill -0 $$ 2>/dev/null; do
    case $(curl -s -o /dev/null -w '%{http_code}' --max-time 9 -H "Authorization: Bearer $MUTIRAO_TOKEN" \
      -H 'Content-Type: application/json' -d '{}' "$MUTIRAO_URL/v1/leases/$lease/heartbeat") in
    4*) exit ;;
    esac
  done) &
  beats=$!
  why=
  if outputs=$(do_job); then
    bring "/v1/leases/$lease/complete" "{\"outputs\": ${outputs:-{\}}}"
    case $status in
    2*) end=done ;;
    # What was brought is wrong: the task fails with a reason at once, or is tried again.
    # Otherwise it would run into its time-out.
    400 | 409 | 413) why=$(said); why="its result was refused: ${why#the result was not taken: }" ;;
    *) end="its result was not taken: $(said)" ;;
    esac
  else
    why='the script failed'
  fi
  if [ -n "$why" ]; then
    bring "/v1/leases/$lease/fail" "{\"reason\": \"$why\"}"
    case $status in
    2*) end="failed: $why" ;;
    *) end="$why, which was not taken: $(said)" ;;
    esac
  fi
  kill "$beats" 2>/dev/null
  beats=
  printf "%s\n" "job $lease: $end" >&2
  [ "$once" = --once ] && exit 0
done
