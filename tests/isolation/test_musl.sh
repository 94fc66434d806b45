#!/bin/sh
# musl's loader, which has neither RTLD_DEEPBIND nor DF_SYMBOLIC, loads copies.  Private names alone
# must keep a host that exports the API from interposing the copies' symbols.
set -u
exti=${EXTISOLATE:-${EXTI_BUILD:-$PWD/build}/extisolate}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1

if ! command -v musl-gcc >/dev/null; then
    echo "skip musl: there is no musl-gcc"
    exit 0
fi

cat >api.c <<'END'
int api_count;
int api_next(void) { return ++api_count; }
END
cat >ext.c <<'END'
extern int api_count;
int api_next(void);
int *ext_seen = &api_count;
int ext_next(void) { return api_next(); }
int ext_peek(void) { return *ext_seen; }
END
cat >host.c <<'END'
#include <dlfcn.h>
#include <stdio.h>
int api_count = 100;
int api_next(void) { return ++api_count; }
int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        void *h = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
        int (*next)(void) = h ? (int (*)(void))dlsym(h, "ext_next") : 0;
        int (*peek)(void) = h ? (int (*)(void))dlsym(h, "ext_peek") : 0;
        if (!next || !peek) {
            fprintf(stderr, "%s\n", dlerror());
            return 1;
        }
        for (int k = 0; k < i; k++)
            next();
        printf("%d ", peek());
    }
    printf("%d\n", api_count);
    return 0;
}
END
musl-gcc -shared -fPIC -o libapi.so -Wl,-soname,libapi.so api.c &&
    musl-gcc -shared -fPIC -o ext.so ext.c &&
    musl-gcc -rdynamic -o host host.c || {
    echo "not ok musl: the host and its libraries cannot be built"
    exit 1
}

# expect NAME OUTPUT COPY...
expect()
{
    name=$1 want=$2
    shift 2
    got=$(./host "$@" 2>&1)
    if [ "$got" = "$want" ]; then
        echo "ok $name"
    else
        echo "not ok $name: printed '$got', not '$want'"
    fi
}

for c in 1 2; do
    "$exti" copy --libpython libapi.so ext.so plain$c >/dev/null &&
        "$exti" copy --rename --libpython libapi.so ext.so renamed$c >/dev/null ||
        echo "not ok musl_copies: extisolate copy failed"
done
expect musl_without_private_names_the_host_interposes "101 103 103" plain1/ext.* plain2/ext.*
expect musl_with_private_names_contexts_are_apart "1 2 100" renamed1/ext.* renamed2/ext.*
