# Shared by the tests whose hosts are programs of their own.  They end here if the library is built with
# a sanitizer, which its host must be too; the plain build runs them.
# shellcheck shell=sh disable=SC2034
build=${EXTI_BUILD:-$PWD/build}
cc=${CC:-cc}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
if nm -D "$build/libextisolate.so" | grep -q -e __asan_init -e __tsan_init; then
    echo "skip $(basename "$0" .sh): the library is built with a sanitizer"
    exit 0
fi

# compile NAME FLAGS...: builds $tmp/NAME
compile()
{
    name=$1
    shift
    # shellcheck disable=SC2086
    $cc -O1 -g -iquote . -I include -D_DEFAULT_SOURCE -std=c11 -o "$tmp/$name" "$@" -L"$build" \
        -lextisolate -Wl,-rpath,"$build" -ldl
}
