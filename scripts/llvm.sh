#!/bin/sh
# Prints the folder with LLVM's programs by their plain names: of the newest version, from 16 on, that has a compiler
# and a linker here.  Prints nothing if there is none.
for folder in $(ls -d /usr/lib/llvm-*/bin 2>/dev/null | sort -rV); do
    version=${folder#/usr/lib/llvm-}
    if [ "${version%/bin}" -ge 16 ] 2>/dev/null && [ -e "$folder/clang" ] && [ -e "$folder/ld64.lld" ]; then
        echo "$folder"
        exit
    fi
done
