/* Reads arbitrary bytes as a context directory's manifest.json.  Aborts when a promise is broken:
 * an error has a message; what was read can be written; and what was written reads back as the same
 * bytes, with each entry found by its source and by its copy. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loader/store/manifest.h"
#include "tests/fuzz/fuzz_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* In memory where the system has a folder for that, since every input is a file. */
static char dir[64], file[80];

static void remove_folder(void)
{
    unlink(file);
    rmdir(dir);
}

static void make_folder(void)
{
    struct stat st;

    snprintf(dir, sizeof dir, "%s/extisolate-fuzz-XXXXXX",
             stat("/dev/shm", &st) == 0 && access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    if (!mkdtemp(dir))
        exit(2);
    snprintf(file, sizeof file, "%s/%s", dir, EXTI_MANIFEST_FILE);
    atexit(remove_folder);
}

static void write_file(const uint8_t *data, size_t size)
{
    FILE *f = fopen(file, "wb");

    if (!f || fwrite(data, 1, size, f) != size || fclose(f))
        exit(2);
}

/* The file's bytes; the caller frees them. */
static char *read_file(size_t *n)
{
    FILE *f = fopen(file, "rb");
    char *text = malloc(1 << 22);

    if (!f || !text)
        exit(2);
    *n = fread(text, 1, 1 << 22, f);
    fclose(f);
    return text;
}

static void broken(const char *promise, const char *detail)
{
    fprintf(stderr, "%s: %s\n", promise, detail);
    abort();
}

static void check_entries(struct exti_manifest *m)
{
    for (size_t i = 0; i < m->count; i++) {
        const struct exti_entry *e = &m->entries[i];

        if (exti__manifest_find(m, e->source) != e)
            broken("an entry is not found by its source", e->source);
        if (!exti__manifest_find_copy(m, e->copy))
            broken("an entry is not found by its copy", e->copy);
    }
}

static void check_written(struct exti_manifest *m)
{
    struct exti_error err = {.code = EXTI_OK};
    struct exti_manifest again;
    char *first, *second;
    size_t n, k;

    if (exti__manifest_write(dir, m, false, &err))
        broken("a manifest that was read cannot be written", err.message);
    first = read_file(&n);
    if (exti__manifest_read(dir, &again, &err))
        broken("a manifest that was written cannot be read", err.message);
    if (exti__manifest_write(dir, &again, false, &err))
        broken("a manifest that was read again cannot be written", err.message);
    second = read_file(&k);
    if (n != k || memcmp(first, second, n) != 0)
        broken("writing again", "gives other bytes");
    exti__manifest_clear(&again);
    free(first);
    free(second);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed)
{
    return fuzz_mutate_text(data, size, room, seed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct exti_error err = {.code = EXTI_OK};
    struct exti_manifest m;

    if (!*dir)
        make_folder();
    write_file(data, size);
    if (exti__manifest_read(dir, &m, &err)) {
        if (!*err.message)
            broken("an error", "has no message");
        return 0;
    }
    check_entries(&m);
    check_written(&m);
    exti__manifest_clear(&m);
    return 0;
}
