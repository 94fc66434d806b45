#define _GNU_SOURCE /* dl_iterate_phdr */
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#ifdef __x86_64__
#include <cpuid.h>
#endif
#ifdef __GLIBC__
#include <gnu/libc-version.h>
#endif

#include "loader/base/error.h"
#include "loader/base/mem.h"
#include "loader/search_priv.h"

void exti__strings_free(char **strings)
{
    for (size_t i = 0; strings && strings[i]; i++)
        exti__free(strings[i]);
    exti__free(strings);
}

int exti__strings_copy(const char *const *from, char ***out, struct exti_error *err)
{
    size_t n = 0;
    char **to;

    while (from[n])
        n++;
    to = exti__calloc(n + 1, sizeof *to);
    for (size_t i = 0; to && i < n; i++) {
        to[i] = exti__strdup(from[i]);
        if (!to[i]) {
            exti__strings_free(to);
            to = NULL;
        }
    }
    if (!to)
        return exti__fail_nomem(err);
    *out = to;
    return 0;
}

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

    if (dl_iterate_phdr(is_loader, &name) && name && *name) {
        copy = exti__strdup(name);
        if (!copy)
            return exti__fail_nomem(err);
    }
    *out = copy;
    return 0;
}

/* Whether a folder's name, with a slash at both ends, stands at `at`; its length in *n. */
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

/* How many such names follow each other from `at` on. */
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

/* glibc's loader has them as one row of strings, each with its end: elf/dl-load.c, system_dirs. */
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

/* Of glibc 2.x the x; 0 for another C library. */
static long libc_minor(void)
{
#ifdef __GLIBC__
    const char *dot = strchr(gnu_get_libc_version(), '.');

    return dot ? strtol(dot + 1, NULL, 10) : 0;
#else
    return 0;
#endif
}

#ifdef __x86_64__
static bool has(unsigned word, unsigned bits)
{
    return (word & bits) == bits;
}

/* The levels of the x86-64 psABI, section 3.1.1; what the system does not save does not count. */
static int x86_level(void)
{
    unsigned a, b, c, d, b7, c1, low, high;

    if (!__get_cpuid(1, &a, &b, &c1, &d) || !__get_cpuid(0x80000001, &a, &b, &c, &d))
        return 1;
    if (!has(c1, bit_SSE3 | bit_SSSE3 | bit_CMPXCHG16B | bit_SSE4_1 | bit_SSE4_2 | bit_POPCNT) ||
        !has(c, bit_LAHF_LM))
        return 1;
    if (!has(c1, bit_FMA | bit_MOVBE | bit_OSXSAVE | bit_AVX | bit_F16C) || !has(c, bit_ABM) ||
        !__get_cpuid_count(7, 0, &a, &b7, &c, &d) || !has(b7, bit_BMI | bit_AVX2 | bit_BMI2))
        return 2;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    if (!has(low, 0x06)) /* XMM and YMM */
        return 2;
    if (!has(low, 0xe0) || /* mask registers and ZMM */
        !has(b7, bit_AVX512F | bit_AVX512BW | bit_AVX512CD | bit_AVX512DQ | bit_AVX512VL))
        return 3;
    return 4;
}
#endif

const char *const *exti__host_hwcaps(void)
{
    static const char *const levels[] = {"x86-64-v4", "x86-64-v3", "x86-64-v2", NULL};
    int level = 1;

#ifdef __x86_64__
    if (libc_minor() >= 33) /* which brought them */
        level = x86_level();
#endif
    return levels + 4 - level;
}

/* All that can be made of tls, the platform and what glibc called the processor's one capability, by
 * leaving some out.  Those for Intel's AVX-512 are not among them. */
int exti__host_legacy(const char *platform, char ***out, struct exti_error *err)
{
    const char *const names[] = {"tls", platform, "x86_64"};
    char text[128], *rows[8] = {0};
    int n = 0, rc;

#ifdef __x86_64__
    if (platform && strlen(platform) < 32 && libc_minor() > 0 && libc_minor() < 37)
        n = 7;
#endif
    for (int mask = n, row = 0; mask > 0; mask--, row++) {
        *text = 0;
        for (int i = 0; i < 3; i++)
            if (mask & (4 >> i))
                snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", *text ? "/" : "",
                         names[i]);
        rows[row] = exti__strdup(text);
        if (!rows[row])
            n = -1;
    }
    rc = n < 0 ? exti__fail_nomem(err) : exti__strings_copy((const char *const *)rows, out, err);
    for (int i = 0; i < 7; i++)
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

/* The system keeps the environment that the process started with, unless a program has put its title
 * there. */
int exti__host_library_path(char **out, struct exti_error *err)
{
    static const char name[] = "LD_LIBRARY_PATH";
    const char *value = NULL;
    char *text = NULL, *copy = NULL;
    size_t n = 0;
    int rc = exti__fs_read("/proc/self/environ", (size_t)1 << 24, &text, &n, NULL);

    if (rc == EXTI_E_NOMEM)
        return exti__fail_nomem(err);
    if (!getauxval(AT_SECURE)) { /* in which case the loader ignores it */
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

const char *exti__host_platform(void)
{
    return (const char *)getauxval(AT_PLATFORM);
}
