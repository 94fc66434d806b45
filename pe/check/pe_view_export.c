/* The self-check's own reading of exports. */
#include "pe/check/pe_view_export.h"

#include <string.h>

#include "pe/check/pe_check_state.h"

enum { MOST_EXPORTS = 65536 };

static bool open_tables(const struct pe_view *v, const uint8_t *p, struct pe_exported *x)
{
    const struct exti_span none = exti__span(NULL, 0);

    x->functions = x->names = x->ordinals = none;
    x->function_count = exti__pe_word32(p + 20);
    x->name_count = exti__pe_word32(p + 24);
    return x->function_count <= MOST_EXPORTS && x->name_count <= MOST_EXPORTS &&
           (!x->function_count ||
            exti__pe_view_at(v, exti__pe_word32(p + 28), 4 * (uint64_t)x->function_count,
                             &x->functions)) &&
           (!x->name_count ||
            (exti__pe_view_at(v, exti__pe_word32(p + 32), 4 * (uint64_t)x->name_count, &x->names) &&
             exti__pe_view_at(v, exti__pe_word32(p + 36), 2 * (uint64_t)x->name_count,
                              &x->ordinals)));
}

void exti__pe_exported(struct pe_check *c, const struct pe_view *v, struct pe_exported *out)
{
    struct pe_exported x = {.rva = v->directory[IMAGE_DIRECTORY_ENTRY_EXPORT].rva,
                            .size = v->directory[IMAGE_DIRECTORY_ENTRY_EXPORT].size};
    uint32_t name;

    *out = (struct pe_exported){.present = false};
    if (!x.rva || !x.size)
        return;
    if (!exti__pe_view_at(v, x.rva, EXPORT_DIRECTORY_SIZE, &x.directory)) {
        exti__pe_broken(c, EXTI_NO_OFFSET, "directory", "exports: no directory at 0x%x", x.rva);
        return;
    }
    x.at = x.directory.base;
    name = exti__pe_word32(x.directory.p + 12);
    if (!open_tables(v, x.directory.p, &x)) {
        exti__pe_broken(c, x.at, "tables",
                        "exports: tables of %u functions and %u names are not in the file",
                        x.function_count, x.name_count);
        return;
    }
    x.dll = name ? exti__pe_view_text(v, name, PE_LONGEST_NAME) : "";
    if (!x.dll) {
        exti__pe_broken(c, x.at + 12, "name", "exports: no name of at most %u characters at 0x%x",
                        PE_LONGEST_NAME, name);
        return;
    }
    if (name)
        x.dll_at = (uint64_t)((const uint8_t *)x.dll - v->file.p);
    x.present = true;
    *out = x;
}

bool exti__pe_is_forwarder(const struct pe_exported *x, uint32_t rva)
{
    return rva >= x->rva && rva - x->rva < x->size;
}

const char *exti__pe_forwarder(const struct pe_view *v, const struct pe_exported *x, uint32_t slot,
                               uint32_t *rva)
{
    *rva = exti__pe_word32(x->functions.p + 4 * (size_t)slot);
    return exti__pe_is_forwarder(x, *rva) ? exti__pe_view_text(v, *rva, PE_VIEW_LONGEST_SYMBOL)
                                          : NULL;
}

uint64_t exti__pe_forwarders_end(const struct pe_view *v, const struct pe_exported *x)
{
    uint64_t end = 0;

    for (uint32_t i = 0; i < x->function_count; i++) {
        uint32_t rva;
        const char *text = exti__pe_forwarder(v, x, i, &rva);

        if (text && rva + strlen(text) + 1 > end)
            end = rva + strlen(text) + 1;
    }
    return end;
}
