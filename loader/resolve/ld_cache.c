/* The format is in glibc's sysdeps/generic/dl-cache.h. */
#include "loader/resolve/ld_cache.h"

#include <string.h>

#include "base/checked.h"
#include "base/error.h"

#define OLD_MAGIC "ld.so-1.7.0"
#define NEW_MAGIC "glibc-ld.so.cache1.1"
enum { OLD_HEADER = 16, OLD_ENTRY = 12, NEW_HEADER = 48, NEW_ENTRY = 24 };
enum { EXTENSION_MAGIC = (int)0xeaa42174u, EXTENSION_HWCAPS = 1 };
enum { FLAGS_BIG_ENDIAN = 3 };

/* hwcap's upper half: marks an entry of a glibc-hwcaps subfolder, numbered by the lower half. */
#define HWCAP_NAMED ((uint32_t)1 << 30)
#define HWCAP_ISA_LEVEL ((uint32_t)0x3ff)

static bool has_magic(struct exti_span s, const char *magic)
{
    return s.n >= strlen(magic) && memcmp(s.p, magic, strlen(magic)) == 0;
}

/* Skips the generator's name and whatever later ldconfigs add, as ld.so does. */
static int read_extensions(struct exti_span file, uint32_t at, struct exti_ld_cache *c,
                           struct exti_error *err)
{
    struct exti_span head, table;
    struct exti_cur cur;
    uint32_t count;
    int rc;

    if (!at)
        return 0;
    rc = exti__span_sub(file, at, 8, "extension directory", &head, err);
    if (rc)
        return rc;
    cur = exti__cur(head, c->big_endian);
    if (exti__cur_u32(&cur) != (uint32_t)EXTENSION_MAGIC)
        return 0;
    count = exti__cur_u32(&cur);
    rc = exti__span_table(file, (uint64_t)at + 8, count, 16, "extension directory", &table, err);
    if (rc)
        return rc;
    cur = exti__cur(table, c->big_endian);
    for (uint32_t i = 0; i < count && !rc; i++) {
        uint32_t tag = exti__cur_u32(&cur), offset, size;

        exti__cur_skip(&cur, 4);
        offset = exti__cur_u32(&cur);
        size = exti__cur_u32(&cur);
        if (tag == EXTENSION_HWCAPS)
            rc = exti__span_sub(file, offset, size, "glibc-hwcaps extension", &c->hwcaps, err);
    }
    return rc;
}

/* `file` starts with the new table and is what its strings are relative to; extensions are
 * relative to the start of the whole file. */
static int open_new(struct exti_span file, struct exti_span whole, struct exti_ld_cache *out,
                    struct exti_error *err)
{
    struct exti_ld_cache c = {.strings = file, .entry_size = NEW_ENTRY};
    struct exti_span head;
    struct exti_cur cur;
    uint32_t extensions;
    int rc = exti__span_sub(file, 0, NEW_HEADER, "header", &head, err);

    if (rc)
        return rc;
    /* Older ldconfigs write 0 here; their caches are only read on the machine that wrote them. */
    c.big_endian = file.p[28] == FLAGS_BIG_ENDIAN;
    cur = exti__cur(head, c.big_endian);
    exti__cur_skip(&cur, sizeof NEW_MAGIC - 1);
    c.count = exti__cur_u32(&cur);
    exti__cur_skip(&cur, 8);
    extensions = exti__cur_u32(&cur);
    rc = exti__span_table(file, NEW_HEADER, c.count, NEW_ENTRY, "library table", &c.entries, err);
    if (!rc)
        rc = read_extensions(whole, extensions, &c, err);
    if (!rc)
        *out = c;
    return rc;
}

/* The old table does not tell its byte order: it is the host's. */
static bool host_is_big_endian(void)
{
    const uint16_t one = 1;

    return *(const uint8_t *)&one == 0;
}

static int open_old(struct exti_span file, struct exti_ld_cache *out, struct exti_error *err)
{
    struct exti_ld_cache c = {.entry_size = OLD_ENTRY, .big_endian = host_is_big_endian()};
    struct exti_cur cur = exti__cur(file, c.big_endian);
    uint64_t end, next;
    int rc;

    exti__cur_skip(&cur, OLD_HEADER - 4);
    c.count = exti__cur_u32(&cur);
    rc = exti__cur_end(&cur, "old header", err);
    if (!rc)
        rc = exti__span_table(file, OLD_HEADER, c.count, OLD_ENTRY, "old library table", &c.entries,
                              err);
    if (rc)
        return rc;
    end = OLD_HEADER + (uint64_t)c.entries.n;
    rc = exti__span_sub(file, end, file.n - end, "strings", &c.strings, err);
    if (rc)
        return rc;
    if (exti__align(end, 8, &next) && next < file.n) {
        struct exti_span rest;

        rc = exti__span_sub(file, next, file.n - next, "new table", &rest, err);
        if (rc)
            return rc;
        if (has_magic(rest, NEW_MAGIC))
            return open_new(rest, file, out, err);
    }
    *out = c;
    return 0;
}

int exti__ld_cache_open(struct exti_span file, struct exti_ld_cache *out, struct exti_error *err)
{
    if (has_magic(file, NEW_MAGIC))
        return open_new(file, file, out, err);
    if (has_magic(file, OLD_MAGIC))
        return open_old(file, out, err);
    return exti__fail(err, EXTI_E_FORMAT, 0, "starts with neither %s nor %s", NEW_MAGIC, OLD_MAGIC);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static uint32_t take_number(const char **p)
{
    uint32_t v = 0;

    for (; is_digit(**p); ++*p)
        v = v * 10 + (uint32_t)(**p - '0');
    return v;
}

/* The order of the table: digits in names compare as numbers, which are greater than any other
 * text. */
static int name_order(const char *a, const char *b)
{
    while (*a && *b) {
        if (is_digit(*a) != is_digit(*b))
            return is_digit(*a) ? 1 : -1;
        if (is_digit(*a)) {
            const uint32_t x = take_number(&a), y = take_number(&b);

            if (x != y) /* as int's difference, which wraps for the long numbers of hashes */
                return x - y < 0x80000000u ? 1 : -1;
        } else if (*a != *b) {
            return (int)*a - (int)*b;
        } else {
            a++;
            b++;
        }
    }
    return (int)*a - (int)*b;
}

struct entry {
    uint32_t kind, key, value, named; /* `named`: hwcap's upper half */
    uint32_t number;                  /* hwcap's lower half */
};

static int cache_entry_at(const struct exti_ld_cache *c, size_t i, struct entry *e,
                          const char **name, struct exti_error *err)
{
    struct exti_span s;
    struct exti_cur cur;
    uint64_t hwcap;
    int rc = exti__span_sub(c->entries, (uint64_t)i * c->entry_size, c->entry_size, "library entry",
                            &s, err);

    if (rc)
        return rc;
    cur = exti__cur(s, c->big_endian);
    e->kind = exti__cur_u32(&cur);
    e->key = exti__cur_u32(&cur);
    e->value = exti__cur_u32(&cur);
    hwcap = 0;
    if (c->entry_size == NEW_ENTRY) {
        exti__cur_skip(&cur, 4); /* the oldest kernel, which ld.so no longer reads */
        hwcap = exti__cur_u64(&cur);
    }
    e->named = (uint32_t)(hwcap >> 32);
    e->number = (uint32_t)hwcap;
    return exti__span_cstr(c->strings, e->key, "library name", name, err);
}

/* The table is sorted in descending order.  *out is the index of the first entry that is not
 * greater than `name`. */
static int find_first(const struct exti_ld_cache *c, const char *name, size_t *out,
                      struct exti_error *err)
{
    size_t low = 0, high = c->count;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        struct entry e;
        const char *key;
        int rc = cache_entry_at(c, middle, &e, &key, err);

        if (rc)
            return rc;
        if (name_order(key, name) > 0)
            low = middle + 1;
        else
            high = middle;
    }
    *out = low;
    return 0;
}

/* The index of the entry's subfolder in `hwcaps`, or -1 if it is not there: neither loader nor
 * processor use it. */
static int rank(const struct exti_ld_cache *c, const struct entry *e, const char *const *hwcaps)
{
    struct exti_span word;
    struct exti_cur cur;
    const char *name;

    if ((e->named & ~HWCAP_ISA_LEVEL) != HWCAP_NAMED ||
        exti__span_sub(c->hwcaps, (uint64_t)e->number * 4, 4, "", &word, NULL))
        return -1;
    cur = exti__cur(word, c->big_endian);
    if (exti__span_cstr(c->strings, exti__cur_u32(&cur), "", &name, NULL))
        return -1;
    for (int i = 0; hwcaps && hwcaps[i]; i++)
        if (strcmp(hwcaps[i], name) == 0)
            return i;
    return -1;
}

int exti__ld_cache_find(const struct exti_ld_cache *c, const char *name, uint32_t kind,
                        const char *const *hwcaps, const char **path, struct exti_error *err)
{
    const char *found = NULL, *key;
    int best = -1;
    size_t i;
    int rc = find_first(c, name, &i, err);

    for (; !rc && i < c->count; i++) {
        struct entry e;
        int place;

        rc = cache_entry_at(c, i, &e, &key, err);
        if (rc || name_order(key, name) != 0)
            break;
        if (e.kind != kind)
            continue;
        if (!e.named && !e.number) { /* follows all entries of subfolders */
            if (!found)
                rc = exti__span_cstr(c->strings, e.value, "library path", &found, err);
            break;
        }
        place = rank(c, &e, hwcaps);
        if (place >= 0 && (best < 0 || place < best)) {
            rc = exti__span_cstr(c->strings, e.value, "library path", &found, err);
            best = place;
        }
    }
    if (!rc)
        *path = found;
    return rc;
}
