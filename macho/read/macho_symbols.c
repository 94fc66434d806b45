/* The symbol table. */
#include "macho/read/macho_symbols.h"

size_t exti__macho_symbol_count(const struct macho_file *f)
{
    return f->pieces[MACHO_SYMBOLS].s.n / NLIST_64_SIZE;
}

int exti__macho_symbol(const struct macho_file *f, size_t i, struct macho_nlist *out,
                       struct exti_error *err)
{
    struct exti_span strings = f->pieces[MACHO_STRINGS].s, s;
    struct macho_nlist n = {.name = ""};
    struct exti_cur c;
    uint32_t name;
    int rc = exti__span_sub(f->pieces[MACHO_SYMBOLS].s, (uint64_t)i * NLIST_64_SIZE, NLIST_64_SIZE,
                            "symbol table: entry", &s, err);

    if (rc)
        return rc;
    c = exti__cur(s, false);
    name = exti__cur_u32(&c);
    n.type = exti__cur_u8(&c);
    n.sect = exti__cur_u8(&c);
    n.desc = exti__cur_u16(&c);
    n.value = exti__cur_u64(&c);
    n.at = s.base - f->file.base;
    /* A string table that ends in NUL, as real ones do, bounds every name.  Searching each
     * name's end would take quadratic time in a hostile file, where every entry can name almost
     * the whole table. */
    if (name && name < strings.n && !strings.p[strings.n - 1])
        n.name = (const char *)strings.p + name;
    else if (name)
        rc = exti__span_cstr(strings, name, "symbol table: a name", &n.name, err);
    if (!rc)
        *out = n;
    return rc;
}

bool exti__macho_is_undefined(const struct macho_nlist *n)
{
    return !(n->type & N_STAB) && (n->type & N_TYPE) == N_UNDF && n->type & N_EXT && !n->value;
}

int32_t exti__macho_nlist_ordinal(const struct macho_file *f, const struct macho_nlist *n)
{
    unsigned ordinal = n->desc >> 8;

    if (!(f->flags & MH_TWOLEVEL) || ordinal == DYNAMIC_LOOKUP_ORDINAL)
        return BIND_SPECIAL_DYLIB_FLAT_LOOKUP;
    return ordinal == EXECUTABLE_ORDINAL ? BIND_SPECIAL_DYLIB_MAIN_EXECUTABLE : (int32_t)ordinal;
}
