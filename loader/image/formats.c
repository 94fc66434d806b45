#include "loader/image/formats.h"

#include <string.h>

#include "base/error.h"
#include "elf/elf_format.h"
#include "macho/macho_format.h"
#include "pe/pe_format.h"

static const struct exti_format_ops *const formats[] = {&exti__elf_format, &exti__macho_format,
                                                        &exti__pe_format};

/* Files that users hand over by mistake, by their first bytes. */
static const struct {
    const char *magic, *name;
} other_formats[] = {
    {"!<arch>\n", "a static library; link it into a shared one first"},
    {"!<thin>\n", "a thin static library; link it into a shared one first"},
    {"\xca\xfe\xba\xbe", "a Java class"},
    {"#!", "a script"},
    {"/* GNU ld script", "a linker script, not the library it names"},
    {"PK\x03\x04", "a zip archive"},
};

int exti__format_of(struct exti_span file, const struct exti_format_ops **out,
                    struct exti_error *err)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        if (formats[i]->probe(file)) {
            *out = formats[i];
            return 0;
        }
    }
    for (size_t i = 0; i < sizeof other_formats / sizeof *other_formats; i++) {
        size_t n = strlen(other_formats[i].magic);

        if (file.n >= n && memcmp(file.p, other_formats[i].magic, n) == 0)
            return exti__fail(err, EXTI_E_UNSUPPORTED, 0, "is %s", other_formats[i].name);
    }
    return exti__fail(err, EXTI_E_FORMAT, 0,
                      "is neither ELF nor Mach-O nor PE: unknown magic bytes");
}

static const struct exti_unread_ops *unread_of(struct exti_span file)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (formats[i]->probe(file))
            return formats[i]->unread;
    return NULL;
}

static size_t unread_tables(struct exti_span head, uint64_t size,
                            struct exti_range out[EXTI_UNREAD_TABLES])
{
    const struct exti_unread_ops *u = unread_of(head);

    return u ? u->tables(head, size, out) : 0;
}

static void unread_parts(struct exti_span head, const struct exti_span table[EXTI_UNREAD_TABLES],
                         uint64_t size, struct exti_unread *out)
{
    const struct exti_unread_ops *u = unread_of(head);

    if (u)
        u->parts(head, table, size, out);
}

const struct exti_unread_ops exti__formats_unread = {unread_tables, unread_parts};
