# The real components that the tests are run against: each function installs one, unless it is in the cache already, and sets the variable by which
# the tests find it. Sourced by `.ci/run`; nothing here starts a service.
# shellcheck shell=bash

OTELCOL_VERSION=0.161.0
NEMO_GYM_VERSION=0.7.0
STYLUA_VERSION=2.6.0
ROTEL_VERSION=0.0.1a15
CARGO_FUZZ_VERSION=0.13.2

CACHE=${GYMRUN_CI_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/gymrun-ci}

say() { printf '.ci: %s\n' "$*" >&2; }

die() {
  say "$*"
  exit 1
}

# The first 12 digits of the checksum of some files: what a cached component was made from.
fingerprint() { cat "$@" | sha256sum | cut -c1-12; }

# Runs a command quietly; when it fails, its last lines are shown.
quietly() {
  local log status=0
  log=$(mktemp)
  "$@" >"$log" 2>&1 </dev/null || status=$?
  if ((status != 0)); then
    tail -n 40 "$log" >&2
    say "exit status $status: $*"
  fi
  rm -f "$log"
  return "$status"
}

# A file is named last, when all that precedes it has succeeded, so an interrupted installation is simply made again.
install_otelcol() {
  local directory
  directory=$CACHE/otelcol-$OTELCOL_VERSION-$(fingerprint "$CI_DIRECTORY/otelcol/manifest.yaml")
  export GYMRUN_TEST_OTELCOL=$directory/otelcol
  [[ -x $GYMRUN_TEST_OTELCOL ]] && return
  say "otelcol $OTELCOL_VERSION: building (about 4 minutes)"
  command -v go >/dev/null || die "otelcol needs a Go toolchain (1.25 or newer) to be built"
  local work
  work=$(mktemp -d)
  cp "$CI_DIRECTORY/otelcol/manifest.yaml" "$work/manifest.yaml"
  (cd "$work" && quietly go run "go.opentelemetry.io/collector/cmd/builder@v$OTELCOL_VERSION" --config manifest.yaml)
  mkdir -p "$directory"
  mv "$work/out/otelcol" "$directory/otelcol.new"
  mv "$directory/otelcol.new" "$GYMRUN_TEST_OTELCOL"
  rm -rf "$work"
}

# CPython 3.13: the newest that NeMo Gym's dependencies have wheels for.
find_python_3_13() {
  local candidate
  for candidate in "$(command -v python3.13 || true)" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.13.*/bin/python3.13; do
    if [[ -x $candidate ]] && "$candidate" -c 'import sys, venv; sys.exit(sys.version_info[:2] != (3, 13))' 2>/dev/null; then
      printf '%s\n' "$candidate"
      return
    fi
  done
  return 1
}

install_nemo_gym() {
  local directory python
  directory=$CACHE/nemo-gym-$NEMO_GYM_VERSION-$(fingerprint "$CI_DIRECTORY/nemo-gym/constraints.txt")
  export GYMRUN_TEST_GYM_VENV=$directory
  [[ -e $directory/installed ]] && return
  say "nemo-gym $NEMO_GYM_VERSION: installing (1.4 GB, about 2 minutes)"
  python=$(find_python_3_13) || die "nemo-gym needs CPython 3.13 with its venv module, on PATH or from pyenv"
  rm -rf "$directory"
  mkdir -p "$CACHE"
  quietly "$python" -m venv "$directory"
  # The metadata asks for a newer patch release of 3.13 than the code needs.
  quietly "$directory/bin/python" -m pip install --no-input --ignore-requires-python --constraint "$CI_DIRECTORY/nemo-gym/constraints.txt" \
    "nemo-gym[telemetry]==$NEMO_GYM_VERSION"
  touch "$directory/installed"
}

# A peer of the benches only. The wheel brings a binary and a module that starts it; the binary is what is measured.
install_rotel() {
  local directory=$CACHE/rotel-$ROTEL_VERSION
  export GYMRUN_BENCH_ROTEL=$directory/rotel-agent
  [[ -x $GYMRUN_BENCH_ROTEL ]] && return
  say "rotel $ROTEL_VERSION: installing"
  rm -rf "$directory"
  mkdir -p "$CACHE"
  quietly python3 -m venv "$directory"
  quietly "$directory/bin/python" -m pip install --no-input --pre "rotel==$ROTEL_VERSION"
  ln -s "$directory"/lib/python3*/site-packages/rotel/rotel-agent "$GYMRUN_BENCH_ROTEL"
}

# Peers of the benches only: supervisors and libraries of Python, in a venv, since an interpreter's own site-packages may import much at each start.
install_python_peers() {
  local directory python
  directory=$CACHE/bench-peers-$(fingerprint "$CI_DIRECTORY/bench-peers/requirements.txt")
  export GYMRUN_BENCH_PYTHON=$directory/bin/python
  [[ -e $directory/installed ]] && return
  say "supervisord, honcho, circus and psutil: installing"
  python=$(find_python_3_13) || python=$(command -v python3) || die "the peers need python3 with its venv module"
  rm -rf "$directory"
  mkdir -p "$CACHE"
  quietly "$python" -m venv "$directory"
  quietly "$directory/bin/python" -m pip install --no-input --requirement "$CI_DIRECTORY/bench-peers/requirements.txt"
  touch "$directory/installed"
}

# A peer of the benches only. Debian's package is installed, since its programs call each other by their places in /usr/bin; it starts no service. Where
# that cannot be done the bench says that it is absent.
install_s6() {
  if ! command -v s6-svscan >/dev/null; then
    say "s6: installing Debian's package"
    quietly apt-get -o Acquire::Retries=3 update || true
    quietly apt-get install --yes --no-install-recommends s6 || {
      say "s6: cannot be installed here"
      return 0
    }
  fi
  GYMRUN_BENCH_S6=$(dirname "$(command -v s6-svscan)")
  export GYMRUN_BENCH_S6
}

# Debian's package is unpacked, not installed: installing it would start its service on port 9100.
install_node_exporter() {
  local directory=$CACHE/node-exporter
  export GYMRUN_TEST_NODE_EXPORTER=$directory/prometheus-node-exporter
  [[ -x $GYMRUN_TEST_NODE_EXPORTER ]] && return
  say "node_exporter: unpacking Debian's package"
  local work
  work=$(mktemp -d)
  chmod 755 "$work"
  quietly apt-get -o Acquire::Retries=3 update || die "node_exporter needs Debian's package lists"
  (cd "$work" && quietly apt-get download prometheus-node-exporter && quietly dpkg-deb --extract ./*.deb .)
  mkdir -p "$directory"
  mv "$work/usr/bin/prometheus-node-exporter" "$GYMRUN_TEST_NODE_EXPORTER"
  rm -rf "$work"
}

install_stylua() {
  local directory=$CACHE/stylua-$STYLUA_VERSION
  STYLUA=$directory/bin/stylua
  [[ -x $STYLUA ]] && return
  say "stylua $STYLUA_VERSION: building (about 2 minutes)"
  quietly cargo install stylua --version "$STYLUA_VERSION" --locked --features lua54 --root "$directory"
}

install_cargo_fuzz() {
  CARGO_FUZZ_DIRECTORY=$CACHE/cargo-fuzz-$CARGO_FUZZ_VERSION
  [[ -x $CARGO_FUZZ_DIRECTORY/bin/cargo-fuzz ]] && return
  say "cargo-fuzz $CARGO_FUZZ_VERSION: building (about 1 minute)"
  quietly cargo install cargo-fuzz --version "$CARGO_FUZZ_VERSION" --locked --root "$CARGO_FUZZ_DIRECTORY"
}
