#!/usr/bin/env bash
# Builds what is handed out: the programs, their manual, completions, licences, a bill of materials, checksums.
#
#   scripts/release.sh [TARGET]
#
# TARGET is a triple. Without one: static (musl) where that target and its compiler are installed, else this machine's.
# The same commit gives the same archive, byte for byte, from the same toolchain and folder.
set -euo pipefail
cd "$(dirname "$0")/.."

host=$(rustc --version --verbose | sed -n 's/^host: //p')
musl=${host%-gnu}-musl
is_installed() { [ -d "$(rustc --print target-libdir --target "$1" 2>/dev/null || echo /nowhere)" ]; }

if [ $# -gt 0 ]; then target=$1
elif [ "$musl" != "$host-musl" ] && is_installed "$musl" && command -v musl-gcc >/dev/null; then target=$musl
else target=$host
fi

version=$(cargo metadata --no-deps --format-version 1 | sed -n 's/.*"name":"hookgate","version":"\([^"]*\)".*/\1/p')
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || echo 0)
export SOURCE_DATE_EPOCH
# no path of this machine in the program
RUSTFLAGS="${RUSTFLAGS:-} --remap-path-prefix=$PWD=hookgate --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=cargo"
export RUSTFLAGS

echo "hookgate $version for $target"
cargo build --profile dist --locked --package hookgate --bins --target "$target"

name=hookgate-$version-$target
out=${CARGO_TARGET_DIR:-target}/release-files
programs=${CARGO_TARGET_DIR:-target}/$target/dist
program=$programs/hookgate
rm -rf "$out"
mkdir -p "$out/$name/completions" "$out/$name/man"
cp "$program" "$programs/hookgate-hook" README.md CHANGELOG.md SECURITY.md LICENSE-MIT LICENSE-APACHE packaging/hookgate.service "$out/$name/"

# the manual and the completions come from the program itself, so it must run here
if "$program" --version >/dev/null 2>&1; then
  "$program" man "$out/$name/man"
  "$program" completions bash >"$out/$name/completions/hookgate.bash"
  "$program" completions zsh >"$out/$name/completions/_hookgate"
  "$program" completions fish >"$out/$name/completions/hookgate.fish"
else
  echo "the program does not run on this machine: no manual and no completions" >&2
fi

RUSTFLAGS='' cargo run --quiet --locked --package xtask -- sbom "$target" "$out/$name.cdx.json"

tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner \
  -C "$out" -cf - "$name" | gzip --no-name -9 >"$out/$name.tar.gz"
(cd "$out" && sha256sum "$name.tar.gz" "$name.cdx.json" >SHA256SUMS)
rm -r "${out:?}/$name"
ls -l "$out"
