/* LC_DYLD_CHAINED_FIXUPS: the header and the imports. */
#ifndef MACHO_READ_MACHO_CHAINED_H
#define MACHO_READ_MACHO_CHAINED_H

#include "macho/read/macho_file.h"

struct macho_import {
    const char *name;
    int32_t ordinal;
    bool weak;
    int64_t addend;
    uint64_t at; /* slice offset of its entry */
};

struct macho_chained {
    struct exti_span s; /* the whole LC_DYLD_CHAINED_FIXUPS payload */
    uint64_t at;        /* its slice offset */
    uint32_t starts_offset, imports_offset, symbols_offset, imports_count, imports_format;
};

/* An import as its table entry encodes it. */
struct macho_import_entry {
    int32_t ordinal;
    bool weak;
    uint32_t name; /* offset in the names */
    int64_t addend;
};

/* The limits of one imports_format. */
struct macho_import_format {
    uint32_t entry, max_ordinal; /* entry: its size */
};

int exti__macho_chained_open(const struct macho_file *f, struct macho_chained *c,
                             struct exti_error *err);
int exti__macho_chained_import(const struct macho_chained *c, uint32_t i, struct macho_import *out,
                               struct exti_error *err);

/* For a valid format only. */
const struct macho_import_format *exti__macho_import_format(uint32_t format);
/* Offset in the payload of import `i`'s entry. */
uint64_t exti__macho_import_offset(const struct macho_chained *c, uint32_t i);
int exti__macho_import_entry(const struct macho_chained *c, uint32_t i,
                             struct macho_import_entry *out, struct exti_error *err);

#endif
