#define _GNU_SOURCE /* dl_iterate_phdr */
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <asm/hwcap.h>
#endif
#ifdef __GLIBC__
#include <gnu/libc-version.h>
#endif

#include "base/error.h"
#include "base/mem.h"
#include "base/os/fs_read.h"
#include "loader/process/guarded_dl.h"
#include "loader/resolve/absent.h"
#include "loader/resolve/search_host.h"
#include "loader/resolve/string_list.h"

static int is_loader(struct dl_phdr_info *info, size_t size, void *user)
{
    (void)size;
    if (!info->dlpi_addr || info->dlpi_addr != getauxval(AT_BASE))
        return 0;
    *(const char **)user = info->dlpi_name;
    return 1;
}

int exti__host_loader(char **out, struct exti_error *err)
{
    const char *name = NULL;
    char *copy = NULL;

    if (exti__dl_iterate_phdr(is_loader, &name) && name && *name) {
        copy = exti__strdup(name);
        if (!copy)
            return exti__fail_nomem(err);
    }
    *out = copy;
    return 0;
}

/* Whether `at` holds a folder's name with a slash at both ends; its length in *n. */
static bool is_dir(struct exti_span s, size_t at, size_t *n)
{
    const uint8_t *end = s.p[at] == '/' ? memchr(s.p + at, 0, s.n - at) : NULL;

    if (!end || end - (s.p + at) < 2 || end[-1] != '/')
        return false;
    *n = (size_t)(end - (s.p + at));
    for (size_t i = 0; i < *n; i++)
        if (s.p[at + i] <= ' ' || s.p[at + i] > '~')
            return false;
    return exti__mem_find(s.p + at, *n, "lib", 3) != NULL;
}

/* Counts the folders' names that follow each other from `at` on. */
static size_t count_dirs(struct exti_span s, size_t at, size_t *end)
{
    size_t count = 0, n;

    while (at < s.n && is_dir(s, at, &n)) {
        at += n + 1;
        count++;
    }
    *end = at;
    return count;
}

/* glibc's loader holds the folders as consecutive strings, each with its NUL: elf/dl-load.c,
 * system_dirs.  The longest such row is taken. */
int exti__host_dirs(struct exti_span loader, char ***out, struct exti_error *err)
{
    size_t best = 0, most = 0, end, n;
    char **dirs;

    for (size_t at = 1; at < loader.n; at++) {
        if (loader.p[at] != '/' || loader.p[at - 1])
            continue;
        n = count_dirs(loader, at, &end);
        if (n > most) {
            most = n;
            best = at;
        }
        if (n)
            at = end - 1;
    }
    dirs = exti__calloc(most + 1, sizeof *dirs);
    for (size_t i = 0, at = best; dirs && i < most; i++) {
        is_dir(loader, at, &n);
        dirs[i] = exti__strdup((const char *)loader.p + at);
        if (!dirs[i]) {
            exti__strings_free(dirs);
            dirs = NULL;
            break;
        }
        dirs[i][n - 1] = 0;
        at += n + 1;
    }
    if (!dirs)
        return exti__fail_nomem(err);
    *out = dirs;
    return 0;
}

#if defined(__x86_64__) || defined(__aarch64__)
/* The x of glibc 2.x; 0 for another C library. */
static long libc_minor(void)
{
#ifdef __GLIBC__
    const char *dot = strchr(gnu_get_libc_version(), '.');

    return dot ? strtol(dot + 1, NULL, 10) : 0;
#else
    return 0;
#endif
}
#endif

#ifdef __x86_64__
struct x86 {
    bool intel;
    unsigned c1, c81, b7; /* ECX of CPUID leaves 1 and 0x80000001, EBX of leaf 7 */
    bool ymm,
        zmm; /* the system saves these registers; glibc ignores features that need unsaved ones */
};

static bool has_bits(unsigned word, unsigned bits)
{
    return (word & bits) == bits;
}

static struct x86 x86_read(void)
{
    struct x86 x = {0};
    unsigned a, b, c, d, low = 0, high;

    if (__get_cpuid(0, &a, &b, &c, &d))
        x.intel = b == signature_INTEL_ebx && c == signature_INTEL_ecx && d == signature_INTEL_edx;
    __get_cpuid(1, &a, &b, &x.c1, &d);
    __get_cpuid(0x80000001, &a, &b, &x.c81, &d);
    __get_cpuid_count(7, 0, &a, &x.b7, &c, &d);
    if (has_bits(x.c1, bit_OSXSAVE))
        __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    x.ymm = has_bits(low, 0x06);
    x.zmm = has_bits(low, 0xe6); /* mask registers too */
    return x;
}

/* The levels of the x86-64 psABI, section 3.1.1. */
static int x86_level(const struct x86 *x)
{
    if (!has_bits(x->c1,
                  bit_SSE3 | bit_SSSE3 | bit_CMPXCHG16B | bit_SSE4_1 | bit_SSE4_2 | bit_POPCNT) ||
        !has_bits(x->c81, bit_LAHF_LM))
        return 1;
    if (!x->ymm || !has_bits(x->c1, bit_FMA | bit_MOVBE | bit_AVX | bit_F16C) ||
        !has_bits(x->c81, bit_ABM) || !has_bits(x->b7, bit_BMI | bit_AVX2 | bit_BMI2))
        return 2;
    if (!x->zmm ||
        !has_bits(x->b7, bit_AVX512F | bit_AVX512BW | bit_AVX512CD | bit_AVX512DQ | bit_AVX512VL))
        return 3;
    return 4;
}

/* Since 2.26 glibc replaces the kernel's platform by its own names for some processors, and adds
 * capabilities, on Intel's alone: cpu-features.c. */
enum { AVX512PF = 1 << 26, AVX512ER = 1 << 27 }; /* newer compilers have no names for these */

static const char *x86_platform(const struct x86 *x)
{
    if (!x->intel)
        return NULL;
    if (x->zmm && has_bits(x->b7, bit_AVX512F | bit_AVX512CD | AVX512ER | AVX512PF))
        return "xeon_phi";
    if (x->ymm && has_bits(x->b7, bit_AVX2 | bit_BMI | bit_BMI2) && has_bits(x->c81, bit_ABM) &&
        has_bits(x->c1, bit_AVX | bit_FMA | bit_MOVBE | bit_POPCNT))
        return "haswell";
    return NULL;
}

static bool x86_avx512_1(const struct x86 *x)
{
    return x->intel && x->zmm && !has_bits(x->b7, AVX512ER) &&
           has_bits(x->b7, bit_AVX512F | bit_AVX512CD | bit_AVX512BW | bit_AVX512DQ | bit_AVX512VL);
}
#endif

const char *const *exti__host_hwcaps(void)
{
    static const char *const levels[] = {"x86-64-v4", "x86-64-v3", "x86-64-v2", NULL};
    int level = 1;

#ifdef __x86_64__
    if (libc_minor() >= 33) { /* which introduced them */
        const struct x86 x = x86_read();

        level = x86_level(&x);
    }
#endif
    return levels + 4 - level;
}

const char *exti__host_platform(void)
{
    const char *platform = NULL;

#ifdef __x86_64__
    if (libc_minor() >= 26) {
        const struct x86 x = x86_read();

        platform = x86_platform(&x);
    }
#endif
    return platform ? platform : (const char *)getauxval(AT_PLATFORM);
}

/* Joins the names whose bits are set to a path; the first name has the highest bit. */
static char *join_some(const char *const *names, int count, int set)
{
    char text[128] = "";

    for (int i = 0; i < count; i++)
        if (set >> (count - 1 - i) & 1)
            snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", *text ? "/" : "",
                     names[i]);
    return exti__strdup(text);
}

/* glibc's names for those of the processor's capabilities that count, the highest bit first:
 * HWCAP_IMPORTANT of dl-procinfo.h.  Returns how many. */
static int capabilities(const char *names[2])
{
    int count = 0;

#if defined(__x86_64__)
    const struct x86 x = x86_read();

    if (libc_minor() >= 26 && x86_avx512_1(&x))
        names[count++] = "avx512_1";
    names[count++] = "x86_64";
#elif defined(__aarch64__)
    if (libc_minor() >= 28 && getauxval(AT_HWCAP) & HWCAP_ATOMICS)
        names[count++] = "atomics";
#else
    (void)names;
#endif
    return count;
}

/* Whether the C library is a glibc that still searches such folders. */
static bool searches_legacy(void)
{
#if defined(__x86_64__) || defined(__aarch64__)
    return libc_minor() > 0 && libc_minor() < 37;
#else
    return false;
#endif
}

/* Every combination of "tls", the platform and the capabilities, with some left out:
 * dl-hwcaps.c. */
int exti__host_legacy(const char *platform, char ***out, struct exti_error *err)
{
    const char *names[4] = {"tls", platform};
    char *rows[16] = {0};
    int count = 0, rc;
    bool nomem = false;

    if (platform && strlen(platform) < 32 && searches_legacy())
        count = 2 + capabilities(names + 2);
    for (int set = (1 << count) - 1, row = 0; set > 0; set--, row++) {
        rows[row] = join_some(names, count, set);
        nomem |= !rows[row];
    }
    rc = nomem ? exti__fail_nomem(err) : exti__strings_copy((const char *const *)rows, out, err);
    for (int i = 0; i < 15; i++)
        exti__free(rows[i]);
    return rc;
}

const char *exti__host_setting(const char *environment, size_t n, const char *name)
{
    const size_t length = strlen(name);
    const char *p = environment, *end;

    for (; (end = memchr(p, 0, n)); n -= (size_t)(end + 1 - p), p = end + 1)
        if (strncmp(p, name, length) == 0 && p[length] == '=')
            return p + length + 1;
    return NULL;
}

/* The kernel keeps the environment that the process started with, unless the program has
 * overwritten it with its title. */
int exti__host_library_path(char **out, struct exti_error *err)
{
    static const char name[] = "LD_LIBRARY_PATH";
    const char *value = NULL;
    char *text = NULL, *copy = NULL;
    size_t n = 0;
    struct exti_error e = {0};
    int rc = exti__fs_read("/proc/self/environ", (size_t)1 << 24, &text, &n, &e);

    if (exti__is_unseen(rc, &e) && !exti__is_forbidden(rc, &e)) {
        if (err)
            *err = e;
        return rc;
    }
    if (!getauxval(AT_SECURE)) { /* a set-user-ID program's loader ignores the variable */
        value = text ? exti__host_setting(text, n, name) : NULL;
        if (!value && !(text && memchr(text, '=', n)))
            value = getenv(name);
        copy = value ? exti__strdup(value) : NULL;
    }
    exti__free(text);
    if (value && !copy)
        return exti__fail_nomem(err);
    *out = copy;
    return 0;
}
