#!/bin/sh
# Symbols of a shared library that its host defines, too, has copied, or has an interposer preloaded
# for: the first are captures, the others stand.
set -u
# shellcheck source=tests/isolation/host.sh
. tests/isolation/host.sh
export EXTI_BUILD="$build"

if ! sh testdata/src/toy/build.sh "$build/toys"; then
    echo "not ok toys: they cannot be built"
    exit 1
fi

cat >"$tmp/var.c" <<'END'
int var_count = 1;
int var_next(void) { return ++var_count; }
END
cat >"$tmp/user.c" <<'END'
extern int var_count;
int var_next(void);
int (*user_table[])(void) = {var_next};
int *user_count(void) { return &var_count; }
int user_next(void) { return user_table[0](); }
END
# A library that contexts share, and what is put before it.
$cc -shared -fPIC -o "$tmp/libvar.so.1" "$tmp/var.c" -Wl,-soname,libvar.so.1 -Wl,-z,nodelete &&
    sed 's/= 1;/= 50;/' "$tmp/var.c" >"$tmp/before.c" &&
    $cc -shared -fPIC -o "$tmp/before.so" "$tmp/before.c" &&
    $cc -shared -fPIC -o "$tmp/user.so" "$tmp/user.c" "$tmp/libvar.so.1" -Wl,-rpath,"$tmp" || {
    echo "not ok libraries: they cannot be built"
    exit 1
}

# How many references are captured: linkers make more than one of some.
references()
{
    readelf -rW "$tmp/user.so" | grep -c " $1"
}

# host NAME FLAGS...
host()
{
    name=$1
    shift
    compile "$name" tests/isolation/host_symbols.c "$@"
}

# check NAME COMMAND...
check()
{
    name=$1
    shift
    if env "$@" >"$tmp/log" 2>&1; then
        echo "ok $name"
    else
        sed 's/^/# /' "$tmp/log"
        echo "not ok $name"
    fi
}

host plain && host defining -rdynamic -DDEFINE_VAR &&
    host needing -Wl,--no-as-needed "$tmp/before.so" && host calculating -Wl,--no-as-needed -lm || {
    echo "not ok hosts: they cannot be built"
    exit 1
}
check host_without_symbols_shares_the_library "$tmp/plain" "$tmp/user.so" library 0
check host_that_defines_them_keeps_its_own "$tmp/defining" "$tmp/user.so" context 0
check control_a_rule_gives_the_hosts "$tmp/defining" "$tmp/user.so" host "$(references var_)" share libvar.so.1
check preloaded_interposer_stands LD_PRELOAD="$tmp/before.so" "$tmp/plain" "$tmp/user.so" other 0
# What a host needs may be preloaded, too, and comes first then.
check interposer_preloaded_after_a_needed_library_stands LD_PRELOAD="libm.so.6 $tmp/before.so" \
    "$tmp/calculating" "$tmp/user.so" other 0
check control_what_the_host_needs_by_a_path_is_not_preloaded "$tmp/needing" "$tmp/user.so" other "$(references var_)"
check control_the_same_opened_globally_is_counted "$tmp/plain" "$tmp/user.so" other "$(references var_)" \
    global "$tmp/before.so"
if host copying -no-pie -fno-pie -DCOPY_VAR "$tmp/libvar.so.1" -Wl,-rpath,"$tmp" &&
    readelf -r "$tmp/copying" | grep -q '_COPY.*var_count'; then
    check variable_that_the_host_has_copied_is_the_librarys "$tmp/copying" "$tmp/user.so" host 0
else
    echo "skip variable_that_the_host_has_copied_is_the_librarys: $cc makes no R_*_COPY"
fi
if host choosing -rdynamic -DCHOOSE_VAR && readelf -sW "$tmp/choosing" | grep -q 'IFUNC.*var_next'; then
    check function_that_the_host_chooses_is_led_back "$tmp/choosing" "$tmp/user.so" context 0
    check control_a_rule_gives_the_hosts_choice "$tmp/choosing" "$tmp/user.so" library "$(references var_next)" \
        share libvar.so.1
else
    echo "skip function_that_the_host_chooses_is_led_back: $cc makes no STT_GNU_IFUNC"
fi
# A program at a fixed address knows another's function by an entry of its own PLT, which is its
# address for all, and an undefined symbol with a value.
if host fixed -no-pie -fno-pie -DADDRESS_VAR "$tmp/libvar.so.1" -Wl,-rpath,"$tmp" &&
    readelf --dyn-syms -W "$tmp/fixed" | awk '$7 == "UND" && $8 ~ /^var_next/ && $2 !~ /^0*$/ { n++ }
        END { exit !n }'; then
    check plt_entry_of_the_host_is_the_librarys "$tmp/fixed" "$tmp/user.so" library 0
    check plt_entry_of_the_host_is_led_back "$tmp/fixed" "$tmp/user.so" context 0 \
        isolate libvar.so.1
else
    echo "skip plt_entry_of_the_host_is_led_back: $cc makes no such symbol"
fi
