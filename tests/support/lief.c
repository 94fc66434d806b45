#include "tests/support/lief.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#if __has_include(<LIEF/ELF.h>)
#include <LIEF/ELF.h>
#include <LIEF/MachO.h>
#include <LIEF/PE.h>

static Elf_Binary_t *(*parse)(const char *);
static Macho_Binary_t **(*parse_macho)(const char *);
static Pe_Binary_t *(*parse_pe)(const char *);

int lief_found(void)
{
    void *lib = parse ? NULL : dlopen("libLIEF.so.0", RTLD_NOW | RTLD_LOCAL);

    if (lib) {
        *(void **)&parse = dlsym(lib, "elf_parse");
        *(void **)&parse_macho = dlsym(lib, "macho_parse");
        *(void **)&parse_pe = dlsym(lib, "pe_parse");
    }
    return parse && parse_macho && parse_pe;
}

/* Prints "id NAME" and "needed NAME" lines, in a separate process because LIEF may crash. */
static void print_facts(const char *path, FILE *f)
{
    Elf_Binary_t *b = parse(path);

    if (!b || !b->dynamic_entries)
        _exit(1);
    for (size_t i = 0; b->dynamic_entries[i]; i++) {
        const Elf_DynamicEntry_t *e = b->dynamic_entries[i];

        /* Only these have the longer type with a name. */
        if (e->tag == LIEF_ELF_DT_SONAME || e->tag == LIEF_ELF_DT_NEEDED)
            fprintf(f, "%s %s\n", e->tag == LIEF_ELF_DT_SONAME ? "id" : "needed",
                    ((const struct Elf_DynamicEntry_Library_t *)e)->name);
    }
    fflush(f);
    _exit(0);
}

/* Dylib and rpath commands have the offset of their string behind the common header. */
static void print_command(const Macho_Command_t *c, FILE *f)
{
    static const struct {
        uint32_t command;
        const char *name;
    } named[] = {{0xd, "id"},
                 {0xc, "library"},
                 {0x80000018, "library"},
                 {0x8000001f, "library"},
                 {0x80000023, "library"},
                 {0x8000001c, "rpath"}};
    uint32_t at;

    for (size_t i = 0; i < sizeof named / sizeof *named; i++) {
        if ((uint32_t)c->command != named[i].command || c->size < 12)
            continue;
        memcpy(&at, c->data + 8, sizeof at);
        if (at < c->size)
            fprintf(f, "%s %.*s\n", named[i].name, (int)(c->size - at), (const char *)c->data + at);
    }
}

static int list_length(const void *list)
{
    void *const *p = list;
    int n = 0;

    while (p && p[n])
        n++;
    return n;
}

static void print_macho(const char *path, FILE *f)
{
    Macho_Binary_t **b = parse_macho(path);

    if (!b || !*b)
        _exit(1);
    for (; *b; b++) {
        fprintf(f, "slice 0x%x %d %d %d\n", (unsigned)(*b)->header.cpu_type,
                list_length((*b)->segments), list_length((*b)->sections),
                list_length((*b)->symbols));
        for (size_t i = 0; (*b)->commands && (*b)->commands[i]; i++)
            print_command((*b)->commands[i], f);
    }
    fflush(f);
    _exit(0);
}

static void print_pe(const char *path, FILE *f)
{
    Pe_Binary_t *b = parse_pe(path);

    if (!b)
        _exit(1);
    fprintf(f, "machine 0x%x %d\n", (unsigned)b->header.machine, list_length(b->sections));
    for (size_t i = 0; b->imports && b->imports[i]; i++)
        fprintf(f, "import %s %d\n", b->imports[i]->name, list_length(b->imports[i]->entries));
    fflush(f);
    _exit(0);
}
#else
int lief_found(void)
{
    return 0;
}

static void print_facts(const char *path, FILE *f)
{
    (void)path;
    (void)f;
    _exit(1);
}

static void print_macho(const char *path, FILE *f)
{
    print_facts(path, f);
}

static void print_pe(const char *path, FILE *f)
{
    print_facts(path, f);
}
#endif

static void take_facts(FILE *f, char *id, size_t id_cap, char *needed, size_t needed_cap)
{
    char line[4096];
    size_t n = 0;

    id[0] = needed[0] = 0;
    while (fgets(line, sizeof line, f)) {
        if (strncmp(line, "needed ", 7) == 0 && n < needed_cap)
            n += (size_t)snprintf(needed + n, needed_cap - n, "%s", line + 7);
        else if (strncmp(line, "id ", 3) == 0)
            snprintf(id, id_cap, "%.*s", (int)strcspn(line + 3, "\n"), line + 3);
    }
}

/* Gives the output of `print`, run in a separate process; NULL on any failure. */
static FILE *start_printer(void (*print)(const char *path, FILE *f), const char *path, pid_t *child)
{
    int ends[2];

    if (!lief_found() || pipe(ends))
        return NULL;
    fflush(NULL);
    *child = fork();
    if (*child == 0) {
        close(ends[0]);
        print(path, fdopen(ends[1], "w"));
    }
    close(ends[1]);
    return fdopen(ends[0], "r");
}

static int answered(FILE *f, pid_t child)
{
    int status = 1;

    fclose(f);
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

int lief_read(const char *path, char *id, size_t id_cap, char *needed, size_t needed_cap)
{
    pid_t child;
    FILE *f = start_printer(print_facts, path, &child);

    if (!f)
        return 0;
    take_facts(f, id, id_cap, needed, needed_cap);
    return answered(f, child);
}

static int read_facts(void (*print)(const char *path, FILE *f), const char *path, char *facts,
                      size_t cap)
{
    pid_t child;
    FILE *f = start_printer(print, path, &child);

    if (!f)
        return 0;
    facts[fread(facts, 1, cap - 1, f)] = 0;
    return answered(f, child);
}

int lief_read_macho(const char *path, char *facts, size_t cap)
{
    return read_facts(print_macho, path, facts, cap);
}

int lief_read_pe(const char *path, char *facts, size_t cap)
{
    return read_facts(print_pe, path, facts, cap);
}
