#!/bin/bash
# The host in Rust: bindings from the installed header, and contexts on threads of std.
. "$(dirname "$0")/support.bash"
results='host_builds_without_a_warning host_calls_numpy_in_four_contexts
each_context_has_a_numpy_of_its_own host_reports_a_failure'

# shellcheck disable=SC2086
{
    command -v cargo >/dev/null || skip_all 'there is no cargo(1)' $results
    minimum=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' examples/rust/Cargo.toml)
    at_least "$(cargo --version | awk '{ print $2 }')" "$minimum" || skip_all "cargo is before $minimum" $results
    command -v bindgen >/dev/null || skip_all 'there is no bindgen(1)' $results
}

make -s --no-print-directory install DESTDIR="$tmp/stage" PREFIX=/opt/exti >"$tmp/log" 2>&1 ||
    cat "$tmp/log"
lib=$tmp/stage/opt/exti/lib
PKG_CONFIG_PATH=$lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$tmp/stage CARGO_TARGET_DIR=$tmp/target \
    RUSTFLAGS="-D warnings -C link-arg=-Wl,-rpath-link,$lib" \
    cargo build --quiet --offline --locked --manifest-path examples/rust/Cargo.toml 2>"$tmp/log" &&
    [ ! -s "$tmp/log" ]
verdict host_builds_without_a_warning
if can_run; then
    LD_LIBRARY_PATH=$lib check_host 'vector, not copied,' "$tmp/target/debug/host"
else
    # shellcheck disable=SC2086
    skip_all "no shared libpython or no numpy for $python" ${results#* }
fi
