#include "elf/edit/elf_cut.h"

#include <stddef.h>

#include "elf/edit/elf_encode.h"
#include "elf/read/elf_left_data.h"

/* The new header of the segment whose file part ends with the data; SIZE_MAX if it is another. */
static size_t find_header(const struct elf_edit *e, const struct exti_range *left)
{
    for (size_t i = 0; i < e->phnum; i++) {
        const GElf_Phdr *ph = &e->phdr[i];

        if (ph->p_type == PT_LOAD && ph->p_offset <= left->at &&
            exti__elf_end(ph->p_offset, ph->p_filesz) == left->at + left->n)
            return i;
    }
    return SIZE_MAX;
}

int exti__elf_plan_cut(struct elf_edit *e, struct exti_error *err)
{
    struct exti_cut *cut = &e->plan->cut;
    struct exti_range left;
    size_t header;
    int rc = exti__elf_left_data(e->f, &left, err);

    if (rc || !left.n || exti__plan_edits(e->plan, left.at, left.n))
        return rc;
    header = find_header(e, &left);
    if (header == SIZE_MAX)
        return 0;
    cut->left = left;
    cut->at = e->f->ehdr.e_phoff + header * exti__elf_phdr_size(e->f) +
              (e->f->is64 ? offsetof(Elf64_Phdr, p_filesz) : offsetof(Elf32_Phdr, p_filesz));
    cut->n = e->f->is64 ? 8 : 4;
    exti__elf_put_addr(e->f, cut->bytes, left.at - e->phdr[header].p_offset);
    return 0;
}
