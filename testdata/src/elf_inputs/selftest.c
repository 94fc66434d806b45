/* A shared object that checks whether it was loaded intact.  selftest() returns 0, or the number of
 * the first thing that differs from what the compiler and linker made. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <math.h>
#include <string.h>

#ifndef BSS_SIZE
#define BSS_SIZE 70000
#endif

/* The dynamic section's place; start-up and unwinding code of some programs walks the section. */
extern ElfW(Dyn) _DYNAMIC[] __attribute__((visibility("hidden")));

int selftest(void);
int selftest_answer_1(void);
int selftest_answer_2(void);
int selftest_data = 4711;
int selftest_cc(void) __attribute__((weak));

static char zeros[BSS_SIZE];
static char small_zeros[200];
static int constructed;
static int count = 40;
static __thread int thread_data = 77;
static __thread char thread_zeros[100];
static double (*volatile cosine)(double) = cos;

static int one(void)
{
    return 1;
}

static int two(void)
{
    return 2;
}

/* Needs relative relocations. */
static int (*const volatile table[])(void) = {one, two};
static const char *const volatile names[] = {"one", "two"};
static int *const volatile to_data = &selftest_data;

__attribute__((constructor)) static void construct(void)
{
    constructed++;
}

int selftest_answer_1(void)
{
    return 1;
}

int selftest_answer_2(void)
{
    return 2;
}

#ifdef VERSIONED
__asm__(".symver selftest_answer_1,selftest_answer@ST_1");
__asm__(".symver selftest_answer_2,selftest_answer@@ST_2");
#endif

static int is_zero(const volatile char *p, size_t n)
{
    while (n--)
        if (*p++)
            return 0;
    return 1;
}

static int has_dynamic(void)
{
    int symtab = 0, strtab = 0;

    for (const ElfW(Dyn) *d = _DYNAMIC; d->d_tag != DT_NULL; d++) {
        symtab += d->d_tag == DT_SYMTAB;
        strtab += d->d_tag == DT_STRTAB;
    }
    return symtab == 1 && strtab == 1;
}

static int find_self(struct dl_phdr_info *info, size_t size, void *user)
{
    int *found = user;

    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
        ElfW(Addr) at = (ElfW(Addr)) & count;

        if (ph->p_type == PT_LOAD && at - (info->dlpi_addr + ph->p_vaddr) < ph->p_memsz)
            *found = 1;
    }
    return 0;
}

int selftest(void)
{
    int found = 0;
    Dl_info info;

    if (constructed != 1)
        return 1;
    if (!is_zero(zeros, sizeof zeros) || !is_zero(small_zeros, sizeof small_zeros))
        return 2;
    if (count != 40 || selftest_data != 4711 || *to_data != 4711)
        return 3;
    if (table[0]() != 1 || table[1]() != 2 || strcmp(names[1], "two") != 0)
        return 4;
    if (thread_data != 77 || !is_zero(thread_zeros, sizeof thread_zeros))
        return 5;
    if (cosine(0) != 1)
        return 6;
    if (!has_dynamic())
        return 7;
    dl_iterate_phdr(find_self, &found);
    if (!found)
        return 8;
    if (!dladdr((void *)selftest, &info) || !info.dli_sname ||
        strcmp(info.dli_sname, "selftest") != 0)
        return 9;
    return selftest_cc ? selftest_cc() : 0;
}
