#!/bin/sh
# CPython's _ssl and _hashlib in contexts of hosts that export an OpenSSL of their own: a program
# with OpenSSL linked in statically, and node.
set -u
# shellcheck source=tests/isolation/host.sh
. tests/isolation/host.sh
version=$(python3 -c 'import ssl; print(ssl.OPENSSL_VERSION)' 2>/dev/null)
if [ -z "$version" ]; then
    echo "skip openssl_hosts: there is no python3 with ssl"
    exit 0
fi

# host NAME FLAGS...
host()
{
    name=$1
    shift
    compile "$name" tests/isolation/host_openssl.c "$@" -L"$build" -lextisolate-python -lpthread
}

# check NAME HOW COMMAND...
check()
{
    name=$1 how=$2
    shift 2
    if HOST_OPENSSL=$how HOST_OPENSSL_VERSION=$version timeout 120 "$@" >"$tmp/log" 2>&1 &&
        grep -q '^captured [0-9]' "$tmp/log"; then
        echo "ok $name"
    else
        sed 's/^/# /' "$tmp/log" | head -n 40
        echo "not ok $name"
    fi
}

libcrypto=$($cc -print-file-name=libcrypto.a)
libssl=$($cc -print-file-name=libssl.a)
if [ -f "$libcrypto" ] && [ -f "$libssl" ]; then
    # Debian 13's compresses by libraries of others.
    needs=$(pkg-config --static --libs-only-l libcrypto | sed 's/-lcrypto//')
    # shellcheck disable=SC2086
    if host static -rdynamic -Wl,--whole-archive "$libssl" "$libcrypto" -Wl,--no-whole-archive \
        $needs; then
        check static_openssl_host own "$tmp/static"
        check control_static_openssl_host_where_a_rule_shares host "$tmp/static"
    else
        echo "not ok static_openssl_host: it cannot be built"
    fi
else
    echo "skip static_openssl_host: no libcrypto.a and libssl.a (package libssl-dev)"
fi

if ! command -v node >/dev/null; then
    echo "skip node_host: there is no node"
elif ! nm -D --defined-only "$(readlink -f "$(command -v node)")" 2>/dev/null | grep -q ' T SSL_new$'; then
    echo "skip node_host: this node has no OpenSSL of its own"
elif host node -DIN_NODE -shared -fPIC; then
    check node_host own node -e "process.dlopen(module, '$tmp/node')"
    check control_node_host_where_a_rule_shares host node -e "process.dlopen(module, '$tmp/node')"
else
    echo "not ok node_host: it cannot be built"
fi
