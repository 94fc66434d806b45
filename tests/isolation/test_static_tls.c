/* The number of contexts that can load a module that needs static TLS is as large as the hazard
 * says, and the tunable's value in the error message makes room for more. */
#define _GNU_SOURCE
#include "tests/support/exti_test.h"

#include <string.h>

#include "tests/isolation/iso.h"

#define CONTEXTS_MAX 200

/* The alignment of glibc's thread control block. */
#if defined(__x86_64__) || defined(__i386__)
#define ALIGN_MOST 64
#else
#define ALIGN_MOST 32
#endif

static char self[4096];

/* Builds a module with a thread-local block.  `model` is a TLS model by its name in the
 * compiler. */
static const char *build_tls_module(int size, int align, const char *model)
{
    static char path[128]; /* the buffer of in_tmp is soon used again */
    FILE *f = fopen(in_tmp("tls.c"), "w");

    want(f);
    snprintf(path, sizeof path, "%s", in_tmp("tls.so"));
    fprintf(f,
            "__thread char block[%d] __attribute__((aligned(%d), tls_model(\"%s\"))) = {1};\n"
            "char *tls_block(void);\nchar *tls_block(void) { return block; }\n",
            size, align, model);
    fclose(f);
    want(system(iso_text("gcc -shared -fPIC -O1 -o '%s' '%s'", path, in_tmp("tls.c"))) == 0);
    return path;
}

/* Loads `path` in one context after the other, until a load fails or `most` have loaded it.  Then
 * closes them all, and returns the number of loads. */
static int load_in_many(const char *path, int most, struct exti_error *err)
{
    static struct exti_ctx *all[CONTEXTS_MAX];
    char *last = NULL;
    int loaded = 0, open = 0;

    while (loaded < most) {
        struct exti_module *m;
        char *block;

        all[open] = iso_open(NULL);
        if (exti_load(all[open++], path, &m, err))
            break;
        block = call_ptr(m, "tls_block");
        want(block != last && *block == 1);
        *block = 2;
        last = block;
        loaded++;
    }
    while (open > 0)
        iso_close_ctx(all[--open]);
    return loaded;
}

static struct exti_hazard_info static_tls_of(const char *path)
{
    struct exti_hazard_info h = {.size = sizeof h};
    struct exti_error err;
    struct exti_image *im;

    want_exti(exti_inspect(path, &im, &err), 0, &err);
    want_int(exti_image_hazard(im, 0, &h), 0);
    want_int(h.kind, EXTI_HAZARD_STATIC_TLS);
    exti_image_free(im);
    return h;
}

/* This process's block has EXTI_STATIC_TLS_ROOM bytes left, and the padding at its end. */
static void want_most_loads(int size, int align)
{
    const char *path = build_tls_module(size, align, "initial-exec");
    struct exti_hazard_info h = static_tls_of(path);
    struct exti_error err = {0};
    int n = load_in_many(path, CONTEXTS_MAX, &err);

    if ((uint64_t)n < h.most || (uint64_t)n > (EXTI_STATIC_TLS_ROOM + 2 * 64) / (uint64_t)size) {
        fprintf(stderr, "%d bytes aligned to %d: %d fit, the hazard says %d\n", size, align, n,
                (int)h.most);
        want(0);
    }
    want_int(err.code, EXTI_E_LOAD);
    want_text(err.message, "static TLS block");
    want_text(err.file, "/tls.");
    if (align <= ALIGN_MOST)
        want_text(err.message, "GLIBC_TUNABLES=glibc.rtld.optional_static_tls=");
    else
        want_text(err.message, iso_text("aligned to more than %d bytes", ALIGN_MOST));
}

#define FITS(name, size, align)                                                                    \
    ISO_CASE(name)                                                                                 \
    {                                                                                              \
        want_most_loads(size, align);                                                              \
    }
FITS(blocks_of_64_bytes, 64, 8)
FITS(blocks_of_100_bytes_aligned_to_4, 100, 4)
FITS(blocks_of_40_bytes_aligned_to_32, 40, 32)
FITS(blocks_of_72_bytes_aligned_to_64, 72, 64)
FITS(blocks_of_256_bytes, 256, 16)
FITS(a_block_that_fits_once, 1600, 8)
FITS(a_block_that_never_fits, 4096, 8)
FITS(a_block_of_too_large_an_alignment, 128, 128)

ISO_CASE(dynamic_blocks_have_no_limit)
{
    struct exti_error err = {0};

    want_int(load_in_many(build_tls_module(256, 16, "global-dynamic"), 64, &err), 64);
}

/* Runs in a process of its own, since a process allocates the block when it starts. */
static int load_64(const char *file)
{
    struct exti_error err = {0};

    return load_in_many(file, 64, &err) == 64 ? 0 : 1;
}

ISO_CASE(the_value_in_the_error_makes_room)
{
    const char *path = build_tls_module(64, 8, "initial-exec"), *value;
    struct exti_error err = {0};

    want(load_in_many(path, CONTEXTS_MAX, &err) < 64);
    value = strstr(err.message, "GLIBC_TUNABLES=");
    want(value);
    want_int(setenv("EXTI_BUILD", iso_build_dir(), 1), 0);
    want(system(iso_text("'%s' '%s'", self, path)) != 0);
    want_int(system(iso_text("%.*s '%s' '%s'", (int)strcspn(value, " ;"), value, self, path)), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_of_64_bytes),
        cmocka_unit_test(blocks_of_100_bytes_aligned_to_4),
        cmocka_unit_test(blocks_of_40_bytes_aligned_to_32),
        cmocka_unit_test(blocks_of_72_bytes_aligned_to_64),
        cmocka_unit_test(blocks_of_256_bytes),
        cmocka_unit_test(a_block_that_fits_once),
        cmocka_unit_test(a_block_that_never_fits),
        cmocka_unit_test(a_block_of_too_large_an_alignment),
        cmocka_unit_test(dynamic_blocks_have_no_limit),
        cmocka_unit_test(the_value_in_the_error_makes_room),
    };
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);

    if (argc == 2 && n > 0)
        return load_64(argv[1]);
    /* A tunable that the user has set would change the size of the block. */
    unsetenv("GLIBC_TUNABLES");
    return cmocka_run_group_tests_name("isolation/static_tls", tests, NULL, NULL);
}
