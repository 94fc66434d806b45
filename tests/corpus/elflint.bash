#!/bin/bash
# Prints what eu-elflint says of the copy $2 and not of the original $1; exits with 0 if that is nothing.
# Known: it takes the end of a symbol for a relocated address, so that a segment right behind .bss looks like
# read-only data; and it knows no tag that the gABI leaves to systems, such as those of withheld constructors
# (elf/read/elf_withheld.h).
withheld() { # FILE
    readelf -dW "$1" | awk -v section="'.dynamic'" '
        /^ 0x/ { if ($1 ~ /^0x0*657874(0c|19)$/) print section ": entry " n + 0 ": unknown tag"; n++ }'
}

lint() { # FILE
    eu-elflint --gnu-ld "$1" 2>&1 | grep -v -F -f <(withheld "$1") |
        grep -v -e '^No errors$' -e 'read-only section modified but text relocation flag not set' | sort
}

! comm -13 <(lint "$1") <(lint "$2") | grep .
