# For tests that run Windows programs.  They share a prefix, made once per build folder in ten
# seconds and 700 MB, and a server, which `finish_wine` ends.
unset DISPLAY WAYLAND_DISPLAY
export LC_ALL=C.UTF-8 # wine names files only in the locale's characters
export WINEPREFIX=${EXTI_WINEPREFIX:-${EXTI_BUILD:-$ROOT/build}/wine/prefix}
export WINEDEBUG=-all WINEDLLOVERRIDES='winedbg.exe=d;mscoree=;mshtml='

# Runs the program itself, because Debian's script `wine` prints much about 32 bits.
find_wine() {
    local f
    for f in /usr/lib/wine/wine64 /usr/lib/wine/wine64-stable wine64 wine64-stable wine; do
        command -v "$f" && return
    done
    return 1
}

# Makes the prefix and starts the server, or prints why it cannot.  Locks the prefix until the test
# ends; `finish_wine` ends the programs in it.
start_wine() {
    WINE=$(find_wine) || { echo "wine is not installed (package wine64)"; return 1; }
    WINESERVER=$(dirname "$WINE")/wineserver
    [ -x "$WINESERVER" ] || WINESERVER=$(command -v wineserver)
    mkdir -p "$(dirname "$WINEPREFIX")"
    exec 8>"$WINEPREFIX.lock"
    flock 8
    if [ ! -f "$WINEPREFIX.made" ] || [ ! -d "$WINEPREFIX/drive_c" ]; then
        rm -rf "$WINEPREFIX"
        timeout 1200 "$WINE" wineboot -i >"$WINEPREFIX.log" 2>&1 8>&- &&
            timeout 600 "$WINESERVER" -w 8>&- && touch "$WINEPREFIX.made" ||
            { echo "wineboot: $(tail -n 1 "$WINEPREFIX.log")"; exec 8>&-; return 1; }
    fi
    "$WINESERVER" -p 8>&-
    # The first program starts the services, which keep its output open.
    timeout 600 "$WINE" cmd /c exit >"$WINEPREFIX.log" 2>&1 </dev/null 8>&- ||
        { echo "wine runs nothing: $(tail -n 1 "$WINEPREFIX.log")"; finish_wine; return 1; }
}

finish_wine() {
    local rc=$?
    [ -z "${WINESERVER:-}" ] || "$WINESERVER" -k
    return $rc
}
