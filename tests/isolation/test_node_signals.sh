#!/bin/sh
# Node's own use of signals with contexts of CPython that use signals, too.
set -u
# shellcheck source=tests/isolation/host.sh
. tests/isolation/host.sh

if ! command -v node >/dev/null || ! command -v python3 >/dev/null; then
    echo "skip node_signals: there is no node or no python3"
    exit 0
fi
if ! compile signals.node tests/isolation/host_signals.c -shared -fPIC -L"$build" -lextisolate-python \
    -Wl,--disable-new-dtags; then
    echo "not ok node_signals: the addon cannot be built"
    exit 1
fi

if timeout 120 node tests/isolation/node_signals.js "$tmp/signals.node" >"$tmp/log" 2>&1 &&
    grep -q '^node has had its signals$' "$tmp/log"; then
    echo "ok node_signals"
else
    sed 's/^/# /' "$tmp/log" | head -n 40
    echo "not ok node_signals"
fi

timeout 120 node tests/isolation/node_signals.js "$tmp/signals.node" share >"$tmp/log" 2>&1
rc=$?
if [ $rc = 1 ] && grep -q "^with a context node's handlers have run for: SIGTERM$" "$tmp/log"; then
    echo "ok control_a_context_without_signals_takes_nodes"
else
    sed 's/^/# /' "$tmp/log" | head -n 40
    echo "not ok control_a_context_without_signals_takes_nodes: status $rc"
fi
