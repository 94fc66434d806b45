/* Looks up names in arbitrary bytes as if they were an /etc/ld.so.cache.  The first byte selects
 * the machine and the processor's subfolders; the next three give the offset of one more name to
 * look up; the file follows.  Aborts if a promise is broken: an answer must be a string inside the
 * file, and a second look-up must give the same. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/resolve/ld_cache.h"
#include "tests/fuzz/fuzz_mutate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define PREFIX 4

static const char *const none[] = {NULL};
static const char *const levels[] = {"x86-64-v3", "x86-64-v2", "other", NULL};

static void broken(const char *promise, const char *name)
{
    fprintf(stderr, "%s: %s\n", promise, name);
    abort();
}

static void check_lookup(struct exti_span file, const struct exti_ld_cache *c, const char *name,
                         uint32_t kind, const char *const *hwcaps)
{
    const char *path = NULL, *again = NULL;
    struct exti_error err = {.code = EXTI_OK};
    int rc = exti__ld_cache_find(c, name, kind, hwcaps, &path, &err);
    uintptr_t at = (uintptr_t)path, start = (uintptr_t)file.p;

    if (rc && (rc != EXTI_E_FORMAT || !*err.message))
        broken("a look-up fails with an unexpected error", name);
    if (rc || !path)
        return;
    if (at < start || at >= start + file.n || !memchr(path, 0, file.n - (at - start)))
        broken("the path found is not a string of the file", name);
    if (exti__ld_cache_find(c, name, kind, hwcaps, &again, NULL) || again != path)
        broken("a second look-up gives another answer", name);
}

/* The header and the entries of either format are words. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed)
{
    static struct fuzz_fields f;

    f = (struct fuzz_fields){.base = PREFIX};
    if (size > PREFIX) {
        f.p = data + PREFIX;
        f.n = size - PREFIX;
        fuzz_words(&f, 0, 256, 4);
    }
    return fuzz_mutate(&f, data, size, room, seed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"libleaf.so", "libleaf9.so.2", "libleaf10.so.2", "",
                                        "9",          "\xff"};
    static const uint32_t kinds[] = {0x0303, 0x0003, 0x0a03, 0};
    const char *const *hwcaps = size && data[0] & 4 ? levels : none;
    struct exti_ld_cache c;
    struct exti_span file;
    uint32_t kind, from;

    if (size < PREFIX)
        return 0;
    kind = kinds[data[0] & 3];
    from = (uint32_t)data[1] | (uint32_t)data[2] << 8 | (uint32_t)data[3] << 16;
    file = exti__span(data + PREFIX, size - PREFIX);
    if (exti__ld_cache_open(file, &c, NULL))
        return 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        check_lookup(file, &c, names[i], kind, hwcaps);
    from = file.n ? (uint32_t)(from % file.n) : 0;
    if (from < file.n && memchr(file.p + from, 0, file.n - from))
        check_lookup(file, &c, (const char *)file.p + from, kind, hwcaps);
    return 0;
}
