#include "loader/process/original_data_elf.h"

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"
#include "base/mem.h"
#include "loader/process/dynamic_elf.h"

/* ---- words ---- */

/* The words of one part that relocations have written, in their order. */
struct words {
    const struct exti_loaded *lib;
    uintptr_t from, to; /* the part */
    uintptr_t *value;   /* owned; of those that are not relative */
    size_t count;

    /* The part's whole pages, from `first` on. */
    size_t page, page_count;
    uintptr_t first;
    uint8_t *has_words; /* owned; for each page */
};

/* Calls `each` for the place of each relocation of the general table in the part. */
static void each_word(struct words *w, void (*each)(struct words *w, const ElfW(Rela) * r,
                                                    void *place, bool relative))
{
    const ElfW(Rela) *table = w->lib->relocs[0];
    const size_t count = table ? w->lib->reloc_size[0] / sizeof *table : 0;

    for (size_t i = 0; i < count; i++) {
        const uintptr_t place = w->lib->base + table[i].r_offset;

        if (place < w->to && w->from < place + sizeof place)
            each(w, &table[i], (void *)place, i < w->lib->relative_count[1]);
    }
}

static void mark_page(struct words *w, uintptr_t at)
{
    const size_t i = (at - w->first) / w->page;

    if (at >= w->first && i < w->page_count)
        w->has_words[i] = 1;
}

static void save_word(struct words *w, const ElfW(Rela) * r, void *place, bool relative)
{
    (void)r;
    if (!relative)
        memcpy(&w->value[w->count++], place, sizeof *w->value);
    mark_page(w, (uintptr_t)place);
    mark_page(w, (uintptr_t)place + sizeof(uintptr_t) - 1);
}

static void restore_word(struct words *w, const ElfW(Rela) * r, void *place, bool relative)
{
    const uintptr_t address = w->lib->base + (uintptr_t)r->r_addend;

    memcpy(place, relative ? &address : &w->value[w->count++], sizeof address);
}

/* How many relocations of the general table are not counted as relative. */
static size_t count_others(const struct exti_loaded *lib)
{
    const size_t all = lib->reloc_size[0] / sizeof(ElfW(Rela));

    return all > lib->relative_count[1] ? all - lib->relative_count[1] : 0;
}

static int save_words(struct words *w, struct exti_error *err)
{
    w->page = (size_t)sysconf(_SC_PAGESIZE);
    w->first = (w->from + w->page - 1) / w->page * w->page;
    w->page_count = w->to > w->first ? (w->to - w->first) / w->page : 0;
    w->has_words = exti__calloc(w->page_count + 1, sizeof *w->has_words);
    if (!w->has_words)
        return exti__fail_nomem(err);
    w->value = exti__calloc(count_others(w->lib) + 1, sizeof *w->value);
    if (!w->value)
        return exti__fail_nomem(err);
    each_word(w, save_word);
    return 0;
}

static void restore_words(struct words *w)
{
    w->count = 0;
    each_word(w, restore_word);
}

/* ---- data ---- */

/* So many bytes of pages without such words are worth a mapping: they are the original's until the
 * program writes to them. */
#define LEAST_MAPPED ((size_t)112 << 10)

/* The longest row of pages without words, by addresses; empty if it is short. */
static void find_unwritten(const struct words *w, uintptr_t *from, uintptr_t *to)
{
    size_t best = 0, end = 0, row = 0;

    for (size_t i = 0; i < w->page_count; i++) {
        row = w->has_words[i] ? 0 : row + 1;
        if (row <= best)
            continue;
        best = row;
        end = i + 1;
    }
    *to = best * w->page < LEAST_MAPPED ? w->to : w->first + end * w->page;
    *from = best * w->page < LEAST_MAPPED ? w->to : *to - best * w->page;
}

static int map_data(const struct exti_pieces *original, uintptr_t from, uintptr_t to, uint64_t at,
                    struct exti_error *err)
{
    if (from == to || mmap((void *)from, to - from, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED,
                           (int)original->handle, (off_t)at) != MAP_FAILED)
        return 0;
    return exti__fail_io(err, errno, NULL, "cannot map data from the original");
}

/* `at`: the offset of the part in the file. */
static int fill_part(const struct words *w, const struct exti_pieces *original, uint64_t at,
                     struct exti_error *err)
{
    uintptr_t from, to;
    int rc;

    find_unwritten(w, &from, &to);
    rc = exti__fs_pieces_read(original, at, (void *)w->from, from - w->from, err);
    if (!rc)
        rc = map_data(original, from, to, at + (from - w->from), err);
    return rc ? rc
              : exti__fs_pieces_read(original, at + (to - w->from), (void *)to, w->to - to, err);
}

static int read_part(const struct exti_loaded *lib, const struct exti_segment *s,
                     const struct exti_pieces *original, const struct exti_range *part,
                     struct exti_error *err)
{
    const uintptr_t at = s->address + (uintptr_t)(part->at - s->at);
    struct words words = {.lib = lib, .from = at, .to = at + part->n};
    int rc = save_words(&words, err);

    if (!rc) {
        rc = fill_part(&words, original, part->at, err);
        restore_words(&words); /* even then: another thread may try again */
    }
    exti__free(words.has_words);
    exti__free(words.value);
    return rc;
}

/* ---- once ---- */

/* The value of DT_NULL, at which nobody looks, while the mapping has its data. */
#define MARK ((ElfW(Addr))1)

static ElfW(Addr) mark_of(const struct exti_loaded *lib)
{
    const ElfW(Dyn) *d = lib->dynamic;

    while (d->d_tag != DT_NULL)
        d++;
    return d->d_un.d_val;
}

EXTI_READ_MEANWHILE static void set_mark(const struct exti_loaded *lib, ElfW(Dyn) * d)
{
    (void)lib;
    if (d->d_tag == DT_NULL)
        d->d_un.d_val = MARK;
}

static int fail_part(const struct exti_range *part, struct exti_error *err)
{
    return exti__fail(err, EXTI_E_CHECK, part->at, "has no variables there, as its manifest says");
}

/* Whether the process may write to all of the part, which it has in memory alone. */
static bool is_writable(const struct exti_layout *layout, const struct exti_segment *s,
                        const struct exti_range *part)
{
    const uintptr_t at = s->address + (uintptr_t)(part->at - s->at);

    return part->n <= s->size - (part->at - s->at) &&
           (at >= layout->relro_hi || at + part->n <= layout->relro_lo);
}

static int read_once(const struct exti_loaded *lib, const struct exti_pieces *original,
                     const struct exti_range *part, struct exti_error *err)
{
    const struct exti_layout layout = exti__loaded_layout(lib);
    struct exti_segment s;
    int rc;

    if (mark_of(lib) == MARK)
        return 0;
    if (mark_of(lib) || (lib->relocs[0] && !lib->reloc_addends[0]) ||
        !exti__loaded_variables(lib, part->at, &s) || !is_writable(&layout, &s, part))
        return fail_part(part, err);
    rc = read_part(lib, &s, original, part, err);
    if (!rc && !exti__dynamic_change(lib, &layout, set_mark))
        rc = exti__fail(err, EXTI_E_LOAD, EXTI_NO_OFFSET,
                        "the system does not let its dynamic section be written to");
    return rc;
}

int exti__original_data(const struct exti_loaded *lib, const struct exti_pieces *original,
                        const struct exti_unread *left_out, struct exti_error *err)
{
    const struct exti_range *data = NULL;
    struct exti_segment s;

    for (size_t i = 0; i < left_out->count; i++) {
        if (exti__loaded_segment(lib, left_out->part[i].at, &s))
            continue;
        if (data)
            return fail_part(&left_out->part[i], err);
        data = &left_out->part[i];
    }
    return data ? read_once(lib, original, data, err) : 0;
}
