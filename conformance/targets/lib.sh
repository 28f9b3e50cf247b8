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

# A target is a folder here with start in it, a variant of one (redis after the
# folder's name, repaired after that), or a design.
begin() {
  folder=$1 variant=
  while [ ! -x "$folder/start" ]; do
    case $folder in
    *-*) variant="${folder##*-} $variant" folder=${folder%-*} ;;
    *) folder=designs variant=$1; break ;;
    esac
  done
  # shellcheck disable=SC2086 # each word of the variant is an argument
  ADDR="${ADDR:-127.0.0.1:0}" "$folder/start" $variant >"$log" 2>&1 &
  pid=$!
  waited=0
  until url=$(sed -n 's/^listening on //p' "$log") && [ -n "$url" ]; do
    kill -0 "$pid" 2>/dev/null && [ "$waited" -lt 480 ] || { cat "$log" >&2; exit 3; }
    waited=$((waited + 1))
    sleep 0.25
  done
}
