/* Refuses delay imports that no directory lists.  GNU dlltool's delay imports have their
 * descriptors anywhere in the sections and leave the delay import directory empty.  Such an import
 * of a renamed library would keep loading the original. */
#include "pe/edit/pe_hidden.h"

#include <string.h>

#include "base/error.h"
#include "base/path.h"
#include "pe/edit/pe_put.h"
#include "pe/edit/pe_rename.h"
#include "pe/read/pe_address.h"
#include "pe/read/pe_import.h"

enum { ATTRIBUTES_RVA = 1 };

static int is_listed_at(void *user, const struct pe_import *im, struct exti_error *err)
{
    (void)err;
    return im->delay && im->at == *(const uint64_t *)user;
}

/* The fields of a descriptor: attributes, name, module handle, address table, name table. */
static bool is_descriptor(const struct pe_file *f, const uint8_t *p, const char **name)
{
    if (exti__pe_u32(p) != ATTRIBUTES_RVA)
        return false;
    for (size_t i = 1; i <= 4; i++)
        if (!exti__pe_section_of(f, exti__pe_u32(p + 4 * i)))
            return false;
    return !exti__pe_string(f, exti__pe_u32(p + 4), PE_LONGEST_NAME, "delay import", name, NULL);
}

static bool names_same_dll(const char *name, const char *other)
{
    return exti__pe_same_dll(name, strlen(name), other, strlen(other));
}

/* Whether `name` is a renamed library, or bind_file, which the copy must reach under its new name
 * alone. */
static bool is_affected_dll(const struct exti_rewrite_opts *o, const char *name)
{
    for (size_t i = 0; i < o->needed_count; i++)
        if (names_same_dll(name, o->needed[i].from))
            return true;
    return o->bind_file && names_same_dll(name, exti__base_name(o->bind_file));
}

/* The next aligned word from `at` on that may begin a descriptor.  Scanning for its first byte is
 * fast: few bytes match. */
static size_t next_word(const struct exti_span raw, size_t at)
{
    const uint8_t *p = at < raw.n ? memchr(raw.p + at, ATTRIBUTES_RVA, raw.n - at) : NULL;

    return p ? (size_t)(p - raw.p) & ~(size_t)3 : raw.n;
}

static int search_section(const struct pe_edit *e, const struct exti_span raw,
                          struct exti_error *err)
{
    for (size_t at = next_word(raw, 0); at + DELAY_DESCRIPTOR_SIZE <= raw.n;
         at = next_word(raw, at + 4)) {
        uint64_t offset = raw.base + at;
        const char *name;

        if (is_descriptor(e->f, raw.p + at, &name) && is_affected_dll(e->req->opts, name) &&
            !exti__pe_imports(e->f, is_listed_at, &offset, NULL))
            return exti__fail(err, EXTI_E_UNSUPPORTED, offset,
                              "delay import of '%s' that the delay import directory does not list, "
                              "as GNU dlltool makes them; link with a plain import instead",
                              name);
    }
    return 0;
}

int exti__pe_refuse_hidden(const struct pe_edit *e, struct exti_error *err)
{
    int rc = 0;

    if (!e->req->opts->needed_count && !e->req->opts->bind_file)
        return 0;
    for (size_t i = 0; !rc && i < e->f->section_count; i++) {
        const struct pe_section *s = &e->f->sections[i];
        struct exti_span raw;

        if (!s->raw_size || exti__pe_from(e->f, s->rva, "section", &raw, NULL))
            continue;
        rc = search_section(e, raw, err);
    }
    return rc;
}
