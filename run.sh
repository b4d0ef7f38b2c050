#!/bin/sh
# Builds relaybench and its reference relay, and runs the benchmark with the arguments given. Needs Go and git, nothing else.
#   ./run.sh                                                   the relays on this machine, on a synthetic corpus
#   ./run.sh --real                                            the same on public events
#   ./run.sh --relay 'mine=./relay --port {port} --db {dir}'   with one more relay
# Relays are found through $NAME_BIN (STRFRY_BIN, GEODE_BIN, …) and PATH; SKIP_NAME=1 leaves one out, SKIP_REF=1 the reference relay.
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
bin="$root/.cache/bin"

if ! command -v go >/dev/null 2>&1; then
	echo "run.sh: no go command found; install Go 1.26 or newer from https://go.dev/dl and make sure that it is in PATH" >&2
	exit 1
fi

# libsecp256k1 checks signatures 3.5 times faster than pure Go. It is taken where it can be linked, and every report says which one was used.
tags=
if [ "${RELAYBENCH_PURE_GO:-}" = "" ] && command -v pkg-config >/dev/null 2>&1 && pkg-config --exists libsecp256k1 2>/dev/null &&
	command -v "${CC:-cc}" >/dev/null 2>&1; then
	tags=libsecp256k1
fi

mkdir -p "$bin"
[ -x "$bin/relaybench" ] || echo "run.sh: building relaybench; the first time, its modules are downloaded" >&2
(cd "$root" && go build -tags "$tags" -o "$bin/" ./cmd/relaybench ./cmd/refrelay)

RELAYBENCH_RESULTS=${RELAYBENCH_RESULTS:-$root/results}
export RELAYBENCH_RESULTS

case "${1-}" in
--version) exec "$bin/relaybench" "$@" ;;
'' | -*) exec "$bin/relaybench" run "$@" ;;
*) exec "$bin/relaybench" "$@" ;;
esac
