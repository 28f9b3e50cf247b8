# Sourced by check and probe: begin TARGET starts it and sets url and pid; the
# caller's exit ends that process, and no other.
log=$(mktemp)
pid=
end() {
  [ -z "$pid" ] || kill "$pid" 2>/dev/null || true
  [ -z "$pid" ] || wait "$pid" 2>/dev/null || true
  rm -f "$log"
}
trap end EXIT
trap 'exit 3' INT TERM

begin() {
  ADDR="${ADDR:-127.0.0.1:0}" "$1/start" >"$log" 2>&1 &
  pid=$!
  waited=0
  until url=$(sed -n 's/^listening on //p' "$log") && [ -n "$url" ]; do
    kill -0 "$pid" 2>/dev/null && [ "$waited" -lt 480 ] || { cat "$log" >&2; exit 3; }
    waited=$((waited + 1))
    sleep 0.25
  done
}
