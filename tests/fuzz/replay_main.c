/* Runs a fuzz target over files, built by any compiler.  The files are those named, or else all in
 * testdata/corpus/<name> if the program is replay_<name>.  Also runs each file cut short, with
 * single bits flipped, and mutated by the target, always in the same ways. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/fuzz/fuzz_mutate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A block of exactly `n` bytes, so that sanitizers see a read past its end. */
static void run_target(const uint8_t *data, size_t n)
{
    uint8_t *exact = malloc(n ? n : 1);

    if (!exact)
        exit(2);
    if (n)
        memcpy(exact, data, n);
    LLVMFuzzerTestOneInput(exact, n);
    free(exact);
}

/* Ends the program when an input takes as long as no sound file does. */
enum { MUTATIONS = 96, SECONDS = 60 };

static void run_spoilt(uint8_t *data, size_t n)
{
    uint32_t random = 1;

    for (int i = 0; i < 16; i++)
        run_target(data, n * (size_t)i / 16);
    for (int i = 0; i < 64 && n; i++) {
        size_t at;

        random = random * 1664525 + 1013904223;
        /* Half of the bits are in the headers, where they have the most effect. */
        at = (random >> 8) % (i % 2 && n > 1024 ? 1024 : n);
        data[at] ^= (uint8_t)(1 << (random >> 5) % 8);
        run_target(data, n);
        data[at] ^= (uint8_t)(1 << (random >> 5) % 8);
    }
}

/* Stands for libFuzzer's own mutations. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t room)
{
    (void)room;
    if (size)
        data[size * 2 / 3] ^= 1;
    return size;
}

static void run_mutated(const uint8_t *data, size_t n)
{
    const size_t room = n * 2 + 64;
    uint8_t *copy = malloc(room);

    if (!copy)
        exit(2);
    for (unsigned seed = 0; seed < MUTATIONS; seed++) {
        memcpy(copy, data, n);
        run_target(copy, LLVMFuzzerCustomMutator(copy, n, room, seed * 2654435761u));
    }
    free(copy);
}

static int run_file(const char *path)
{
    const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    FILE *f = fopen(path, "rb");
    uint8_t *data;
    long n;

    if (!f || fseek(f, 0, SEEK_END) || (n = ftell(f)) < 0) {
        perror(path);
        return 1;
    }
    rewind(f);
    data = malloc((size_t)n + 1);
    if (!data || fread(data, 1, (size_t)n, f) != (size_t)n) {
        perror(path);
        return 1;
    }
    fclose(f);
    alarm(SECONDS);
    /* Targets promise more for intact files, which those that a fuzzer made are not. */
    if (strncmp(name, "fuzz-", 5) != 0)
        setenv("EXTI_FUZZ_WHOLE", "1", 1);
    run_target(data, (size_t)n);
    unsetenv("EXTI_FUZZ_WHOLE");
    run_spoilt(data, (size_t)n);
    run_mutated(data, (size_t)n);
    alarm(0);
    free(data);
    printf("ok %s\n", name);
    fflush(stdout);
    return 0;
}

static int run_folder(const char *dir)
{
    struct dirent **entries;
    char path[4096];
    int n = scandir(dir, &entries, NULL, alphasort), rc = 0, files = 0;

    for (int i = 0; i < n; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.') {
            rc |= run_file(path);
            files++;
        }
        free(entries[i]);
    }
    if (n >= 0)
        free(entries);
    if (!files)
        printf("not ok %s: no files\n", dir);
    return rc || !files;
}

int main(int argc, char **argv)
{
    const char *name = strrchr(argv[0], '_');
    char dir[256];
    int rc = 0;

    for (int i = 1; i < argc; i++)
        rc |= run_file(argv[i]);
    if (argc > 1)
        return rc;
    snprintf(dir, sizeof dir, "testdata/corpus/%s", name ? name + 1 : "");
    return run_folder(dir);
}
