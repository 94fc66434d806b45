#!/bin/bash
# Files from Microsoft's linker: several CPythons in one process, with their own extension modules
# and others, and the library of a Node.js addon.
. "$(dirname "$0")/support.bash"
begin real
corpus=${EXTI_WINE_CORPUS:-$mine/real}
"$ROOT/tests/wine/fetch.sh" "$corpus"
corpus=$(realpath "$corpus")
lib=$corpus/python/lib
site=$corpus/site
libpython=$corpus/python/python311.dll

# python_host <COMMANDS: wine's Python does not start with files as its standard streams
python_host() {
    cat | timeout 1800 "$WINE" "$mine/host.exe" 2>&1 | tr -d '\r' | sed '/^end$/q' >"$T/out"
}

# told NAME LINE...: the host printed these lines
told() {
    local bad=0 line
    for line in "${@:2}"; do
        grep -qxE -e "$line" out || { bad=1; echo "    no '$line'"; }
    done
    say $bad "$1"
}

windows() { echo "Z:${1//\//\\}"; }

# modules ROOT: each extension module below, its name and file
modules() {
    (cd "$1" && find . -name '*.pyd' | sort) | while read -r f; do
        n=${f#./}
        n=${n%%.*}
        echo "${n//\//.} $1/${f#./}"
    done
}

# make DIR MODULES: a context with the modules of that list; DIR.list is for the finder
make() {
    local name file files
    mapfile -t files < <(cut -d' ' -f2- "$2")
    context "$1" "$libpython" "${files[@]}" || return
    while read -r name file; do
        echo "$name $(windows "$(sed -n "s|^$file -> ||p" "$1.map")")"
    done <"$2" >"$1.list"
}

# begun A B [FOLDER...]: the host's commands that start both
begun() {
    local c folders=''
    for c in "${@:3}"; do folders+=", r'$(windows "$c")'"; done
    printf 'load %s 1100 %s\n' a "$1" b "$2"
    echo 'same a b'
    for c in a b; do
        echo "python $c $lib"
        echo "exec $c import sys; sys.path += [r'$(windows "$site")', r'$(windows "$ROOT/tests/wine")']; \
sys.dont_write_bytecode = True; import finder; finder.install(r'$(windows "$T/$c.list")'$folders)"
    done
}
both() { printf "exec a me = 'a'; %s\nexec b me = 'b'; %s\n" "$1" "$1"; }
# tell EXPRESSION: prints it after the context's name
tell() { both "$(printf "import %s; print(me, %s, flush=True)" "$1" "$2")"; }

finish_real() {
    # ---- a third-party library -------------------------------------------------------------------
    local d=$corpus/npm/package/lib c f
    if [ ! -d "$d" ]; then
        skip vips "$(cat "$corpus/npm.skip")"
    elif have vips "$mine/bcryptprimitives.dll"; then
        mkdir vips
        f=$(cd "$d" && echo ./*.node)
        for c in a b c; do
            mkdir "vips/$c"
            for i in "$d"/*.dll "$d"/*.node; do
                i=$(basename "$i")
                case $i in
                libvips-42.dll) set -- "id=libvips-$c.dll" ;;
                libvips-cpp*) set -- "id=vipscpp-$c.dll" "libvips-42.dll=libvips-$c.dll" ;;
                *) set -- "libvips-42.dll=libvips-$c.dll" \
                    "$(basename "$d"/libvips-cpp*)=vipscpp-$c.dll" ;;
                esac
                case $i in *.node) to=sharp-$c.node ;; *) to=${1#id=} ;; esac
                "$rewrite" "$d/$i" "vips/$c/$to" "$@" >out 2>err || say 1 "vips: $i is rewritten"
            done
        done
        host <<<"$(for c in a b c; do
            echo "load $c 1100 $T/vips/$c/sharp-$c.node"
            echo "load v$c 1100 $T/vips/$c/libvips-$c.dll"
        done)
same va vb
same vb vc
give va vips_concurrency_set 3
give vb vips_concurrency_set 5
$(for c in a b c; do echo "call v$c vips_concurrency_get"; done)
$(for c in a b c; do echo "walk $T/vips/$c $T"; done)"
        told "vips: three of it in a process, each with a state of its own" 'a loaded' 'b loaded' \
            'c loaded' 'va vb distinct' 'vb vc distinct' 'va vips_concurrency_get 3' \
            'vb vips_concurrency_get 5' 'vc vips_concurrency_get 0' end
        [ "$(grep -c '^modules 3 references [0-9]* leaks 0 unresolved 0$' out)" = 3 ]
        say $? "vips: none refers to another's"
        host <<<"load a 1100 $d/${f#./}
load b 1100 $d/libvips-42.dll
call b vips_concurrency_get
walk $T $T"
        told "vips: the original loads as well" 'a loaded' 'b vips_concurrency_get 0' end
    fi
    finish
}

[ -f "$libpython" ] || { skip python "$(cat "$corpus/python.skip")"; finish_real; }

# ---- CPython -------------------------------------------------------------------------------------

modules "$lib" >lib.modules
make a lib.modules && apia=$api && make b lib.modules && apib=$api
say $? "python: CPython 3.11 and its $(wc -l <lib.modules) extension modules are copied twice"
meet="import os, sys, time; p = r'$(windows "$T")' + chr(92); open(p + me + '.here', 'x').close(); \
end = time.time() + 600; other = p + ('b' if me == 'a' else 'a') + '.here'; \
[time.sleep(0.01) for _ in iter(lambda: os.path.exists(other) or time.time() > end, True)]; \
sys.stdout.write(f'{me} met {os.path.exists(other)}\n'); sys.stdout.flush()"
python_host <<<"$(begun "$apia" "$apib" "$lib")
$(tell sys 'sys.version_info[:2], sys.winver')
$(tell '_decimal, decimal' "_decimal.__file__.split(chr(92))[-2], me == 'a' and \
setattr(decimal.getcontext(), 'prec', 9), decimal.Decimal(1) / 7")
$(tell xml.etree.ElementTree "xml.etree.ElementTree.fromstring('<a><b/></a>')[0].tag")
$(tell sqlite3 "sqlite3.connect(':memory:').execute('select 6 * 7').fetchone()")
$(tell ctypes "ctypes.pythonapi.Py_IsInitialized()")
$(tell 'ssl' "ssl.OPENSSL_VERSION[:11]")
$(tell 'lzma, bz2, unicodedata, select, _queue, _uuid, _zoneinfo, _overlapped' \
    "lzma.decompress(lzma.compress(b'x')), bz2.decompress(bz2.compress(b'y'))")
$(tell 'xxlimited, xxlimited_35, _testmultiphase' "xxlimited.foo(1, 2)")
exec a sys.setswitchinterval(0.5); sys.mine = 1
$(tell sys "sys.getswitchinterval(), hasattr(sys, 'mine')")
walk $T/a $T
walk $T/b $T
together
$(both "$meet")
end
stop a
exec b print('b goes on', sys.getswitchinterval(), flush=True)
stop b"
told "python: two interpreters start" 'a loaded' 'b loaded' 'a b distinct' 'a started' 'b started' \
    "a \(3, 11\) 3.11" "b \(3, 11\) 3.11"
told "python: decimal contexts" 'a a None 0.142857143' 'b b False 0.1428571428571428571428571429'
told "python: extension modules of the standard library" 'a b' 'b b' 'a \(42,\)' 'b \(42,\)' 'a 1' \
    'b 1' 'a OpenSSL 1.1' 'b OpenSSL 1.1' "a b'x' b'y'" "b b'x' b'y'"
told "python: modules of the limited API" 'a 3' 'b 3'
told "python: settings of one are not the other's" 'a 0.5 True' 'b 0.005 False'
[ "$(grep -cE '^modules [0-9]{2} references [0-9]{4} leaks 0 unresolved 0$' out)" = 2 ]
say $? "python: no reference leaves its context: $(grep -m 1 '^modules' out)"
told "python: both run at once" 'a met True' 'b met True'
told "python: one stops, the other goes on" 'a stopped' 'b goes on 0.005' 'b stopped' end
! grep -E 'raised|Traceback|Error' out
say $? "python: nothing was raised"

# Without copies, everybody gets the first libpython of that name.
mkdir c0 c1
for c in c0 c1; do cp "$libpython" "$lib/_decimal.pyd" $c; done
host <<<"load a 1100 $T/c0/python311.dll
load b 1100 $T/c1/python311.dll
same a b
load d 1100 $T/c1/_decimal.pyd
walk $T/c1 $T"
told "python: with two originals, the second one's module uses the first" 'a b distinct' 'd loaded' \
    'leak _decimal.pyd Py.* python311.dll' 'modules 2 references [0-9]+ leaks [0-9]+ unresolved 0'

# ---- wheels --------------------------------------------------------------------------------------

[ -d "$site" ] || { skip wheels "$(cat "$corpus/site.skip")"; finish_real; }
rm -rf a b
modules "$site" >site.modules
cat lib.modules site.modules >all.modules
make a all.modules && apia=$api && make b all.modules && apib=$api
say $? "wheels: their $(wc -l <site.modules) extension modules are copied twice"
run verify a b
check "wheels: verify finds both contexts sound" 0 'a: [0-9]+ copies, all sound' \
    'b: [0-9]+ copies, all sound'
[ "$(ls a b | grep -c '^libopenblas.*\.dll$')" = 2 ] && [ "$(ls a b | grep -c '^libcrypto.*\.dll$')" = 2 ]
say $? "wheels: each has what they bring: $(ls a | grep -c '\.dll$') libraries"
python_host <<<"$(begun "$apia" "$apib" "$lib" "$site/numpy/.libs")
$(tell numpy "numpy.__version__, numpy.arange(10).sum(), round(float(numpy.linalg.det([[1, 2], [3, 4]])), 6)")
exec a numpy.seterr(divide='raise')
$(tell numpy "numpy.geterr()['divide'], numpy._globals.__name__")
$(tell numpy.random "numpy.random.default_rng(1).integers(1000), numpy.random.seed(len(me))")
$(tell numpy.fft "abs(numpy.fft.fft(numpy.ones(4))).astype(int).tolist()")
$(tell lxml.etree "lxml.etree.tostring(lxml.etree.XSLT(lxml.etree.XML('<xsl:stylesheet version=\"1.0\" \
xmlns:xsl=\"http://www.w3.org/1999/XSL/Transform\"><xsl:template match=\"/\"><z/></xsl:template>\
</xsl:stylesheet>'))(lxml.etree.XML('<y/>')))")
$(tell markupsafe._speedups "markupsafe.escape('<')")
$(tell yaml "yaml.load('[1, {x: 2}]', yaml.CSafeLoader)")
$(tell _cffi_backend "_cffi_backend.__version__")
$(tell cryptography.hazmat.bindings._rust "cryptography.hazmat.bindings._rust.openssl.openssl_version_text()[:8]")
$(tell cryptography.fernet "(lambda f: f.decrypt(f.encrypt(b'secret')))(cryptography.fernet.Fernet(\
cryptography.fernet.Fernet.generate_key()))")
walk $T/a $T
walk $T/b $T
walk $T/a $site
stop b
exec a print('a goes on', numpy.arange(3).tolist(), flush=True)"
told "numpy: two of it compute" 'a 1.23.5 45 -2.0' 'b 1.23.5 45 -2.0' 'a \[4, 0, 0, 0\]' \
    'b \[4, 0, 0, 0\]' 'a 473 None' 'b 473 None'
told "numpy: settings of one are not the other's" 'a raise numpy._globals' 'b warn numpy._globals'
told "lxml: two of it transform" "a b'<z/>'" "b b'<z/>'"
told "markupsafe, yaml, cffi: two of each" 'a &lt;' 'b &lt;' "a \[1, \{'x': 2\}\]" "b \[1, \{'x': 2\}\]" \
    'a 2.1.1' 'b 2.1.1'
told "cryptography, which imports python3.dll: two of it encrypt" "a OpenSSL .*" "b OpenSSL .*" \
    "a b'secret'" "b b'secret'"
[ "$(grep -cE '^modules [0-9]{2} references [0-9]{4} leaks 0 unresolved 0$' out)" = 3 ]
say $? "wheels: no reference leaves its context: $(grep -m 1 '^modules' out)"
! grep '^leak' out >others && [ "$(tail -n 1 out)" = end ]
say $? "wheels: nor does one lead to what wheels bring" "$(cat others)"
told "wheels: one stops, the other goes on" 'b stopped' 'a goes on \[0, 1, 2\]' end
! grep -E 'raised|Traceback|Error' out
say $? "wheels: nothing was raised"

finish_real
