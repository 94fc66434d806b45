/* The self-check's own reading of relocations and the load configuration. */
#include "pe/check/pe_view_table.h"

enum {
    RELOC_ABSOLUTE = 0,
    RELOC_HIGHLOW = 3,
    RELOC_DIR64 = 10,
    RELOC_BLOCK = 8,
};

static bool walk_block(const struct pe_view *v, struct exti_span block,
                       void (*each)(void *user, uint64_t rva, unsigned size), void *user,
                       uint64_t *flaw)
{
    const uint32_t page = exti__pe_word32(block.p);

    for (size_t at = RELOC_BLOCK; at + 2 <= block.n; at += 2) {
        const uint16_t entry = exti__pe_word16(block.p + at);
        const unsigned type = entry >> 12, size = type == RELOC_DIR64 ? 8 : 4;
        const uint64_t rva = (uint64_t)page + (entry & 0xfff);

        if (type == RELOC_ABSOLUTE)
            continue;
        *flaw = block.base + at;
        if ((type != RELOC_HIGHLOW && type != RELOC_DIR64) || rva + size > v->image_size)
            return false;
        each(user, rva, size);
    }
    *flaw = EXTI_NO_OFFSET;
    return true;
}

void exti__pe_relocs(const struct pe_view *v, void (*each)(void *user, uint64_t rva, unsigned size),
                     void *user, uint64_t *flaw)
{
    const size_t i = IMAGE_DIRECTORY_ENTRY_BASERELOC;
    struct exti_span s, block;

    *flaw = EXTI_NO_OFFSET;
    if (!v->directory[i].size ||
        !exti__pe_view_at(v, v->directory[i].rva, v->directory[i].size, &s))
        return;
    for (uint64_t at = 0; at < s.n; at += block.n) {
        const uint32_t size = s.n - at >= RELOC_BLOCK ? exti__pe_word32(s.p + at + 4) : 0;

        *flaw = s.base + at;
        if (size < RELOC_BLOCK || size % 4 || exti__span_sub(s, at, size, "", &block, NULL) ||
            !walk_block(v, block, each, user, flaw))
            return;
    }
    *flaw = EXTI_NO_OFFSET;
}

/* The structure holds its own size; for i386 the directory may understate it. */
bool exti__pe_load_config(const struct pe_view *v, struct exti_span *out)
{
    const uint32_t rva = v->directory[IMAGE_DIRECTORY_ENTRY_LOAD_CONFIG].rva;

    return exti__pe_view_at(v, rva, 4, out) &&
           exti__pe_view_at(v, rva, exti__pe_word32(out->p), out);
}

bool exti__pe_load_flags_at(const struct pe_view *v, uint64_t *at)
{
    const uint64_t offset = v->plus ? 78 : 54;
    struct exti_span s;

    if (!v->directory[IMAGE_DIRECTORY_ENTRY_LOAD_CONFIG].size || !exti__pe_load_config(v, &s) ||
        s.n < offset + 2)
        return false;
    *at = s.base + offset;
    return true;
}
