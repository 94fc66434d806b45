# Makes a libpython for ARM64, since none can be fetched.

# stub_libpython FOLDER FILE...: makes a library that exports what the files import from CPython's
stub_libpython() {
    local folder=$1
    shift
    mkdir -p "$folder"
    llvm-readobj --coff-imports "$@" | awk '
        /^(Delay)?Import \{/ { api = 0 }
        $1 == "Name:" { api = tolower($2) ~ /^python3(11)?\.dll$/ }
        api && $1 == "Symbol:" { print $2 }' | sort -u >symbols
    { printf '.data\n'; sed 's/.*/.globl &\n&: .quad 0/' symbols; } >stub.s
    { printf 'LIBRARY python311.dll\nEXPORTS\n'; cat symbols; } >stub.def
    clang -target aarch64-windows-msvc -c stub.s -o stub.obj &&
        lld-link -dll -noentry -machine:arm64 -def:stub.def -out:"$folder/python311.dll" stub.obj
}
