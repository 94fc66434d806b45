/* Calls the library for test_macho_corpus.sh:
 *
 *   rebuild --again FILE...          lays out __LINKEDIT and signs it again, without edits; prints
 *                                    each slice's architecture, FILE, and the differences
 *   rebuild --move LIBRARY <PAIRS    makes each copy, with a dependency on LIBRARY by a name that
 *                                    does not fit into the header; prints original, copy and name
 *   rebuild --judge <PAIRS           checks each copy against its original
 *   rebuild --lief <PAIRS            compares what LIEF sees in both, and prints how many pairs it
 *                                    can read; status 3 without LIEF
 *
 * A line of PAIRS has the original and the copy, separated by a tab; anything after a second tab is
 * ignored. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/mem.h"
#include "macho/edit/macho_linkedit.h"
#include "macho/edit/macho_sign.h"
#include "macho/read/macho_arch.h"
#include "macho/read/macho_fat.h"
#include "tests/support/lief.h"

static struct exti_error error;
static int failures;

static int failed(const char *path)
{
    printf("%s: %s: 0x%llx: %s\n", path, exti_code_name(error.code),
           (unsigned long long)error.offset, error.message);
    failures++;
    return -1;
}

static uint8_t *read_file(const char *path, size_t *size)
{
    FILE *f = fopen(path, "rb");
    struct stat st;
    uint8_t *p = NULL;

    if (f && fstat(fileno(f), &st) == 0)
        p = malloc((size_t)st.st_size + 1);
    if (!p || fread(p, 1, (size_t)st.st_size, f) != (size_t)st.st_size) {
        perror(path);
        exit(2);
    }
    fclose(f);
    *size = (size_t)st.st_size;
    return p;
}

/* ---- no change ------------------------------------------------------------------------------- */

/* Puts a slice together from its own commands and pieces.  The size of the string table is given as
 * changed; otherwise all pieces would stay in place without being laid out. */
static int build_again(struct macho_build *b, struct macho_file *f, struct exti_buf *out)
{
    struct macho_piece *strings = &f->pieces[MACHO_STRINGS];
    struct exti_buf linkedit = exti__buf(f->file.n + 4096), *same;
    uint64_t fileoff = 0;
    int rc = exti__macho_signature_read(f, &b->signature, &error);

    b->identifier = b->signature.identifier ? b->signature.identifier : "";
    b->resign = b->signature.present;
    b->header_flags = f->flags;
    b->command_count = (uint32_t)f->command_count;
    if (!rc)
        rc = exti__buf_append(&b->commands, f->file.p + MACH_HEADER_64_SIZE, f->sizeofcmds, &error);
    same = exti__macho_piece_new(b, MACHO_STRINGS, f->file.n);
    if (!rc)
        rc = exti__buf_append(same, strings->s.p, strings->s.n, &error);
    if (strings->s.n)
        strings->s.n--;
    if (!rc)
        rc = exti__macho_linkedit(b, &linkedit, &fileoff, &error);
    if (!rc)
        rc = exti__buf_append(out, f->file.p, (size_t)fileoff, &error);
    if (!rc)
        rc = exti__buf_append(out, linkedit.p, linkedit.n, &error);
    if (!rc)
        rc = exti__buf_patch(out, MACH_HEADER_64_SIZE, b->commands.p, b->commands.n, &error);
    exti__buf_free(&linkedit);
    if (!rc && b->resign) {
        const struct exti_span all = exti__span(out->p, out->n);
        const struct macho_signable slice = {
            .parts = &all, .count = 1, .exec_seg_limit = f->text->filesize};
        struct exti_buf signature = exti__buf(f->file.n + 4096);

        rc = exti__macho_sign(&b->signature, b->identifier, &slice, &signature, &error);
        if (!rc)
            rc = exti__buf_append(out, signature.p, signature.n, &error);
        exti__buf_free(&signature);
    }
    return rc;
}

static uint64_t big(struct exti_span s, uint64_t at, size_t size)
{
    uint64_t v = 0;

    for (size_t i = 0; i < size; i++)
        v = v << 8 | (at + i < s.n ? s.p[at + i] : 0);
    return v;
}

static uint64_t text_section_size(const struct macho_file *f)
{
    for (size_t i = 0; i < f->section_count; i++)
        if (strcmp(f->sections[i].name, "__text") == 0)
            return f->sections[i].size;
    return 0;
}

/* Whether two slices have the same load commands, except for sizes that the signature changes. */
static bool same_commands(const struct macho_file *a, const struct macho_file *b)
{
    enum { VMSIZE = 32, FILESIZE = 48, DATASIZE = 12 };
    uint8_t x[65536];

    if (a->sizeofcmds != b->sizeofcmds || a->sizeofcmds > sizeof x)
        return false;
    memcpy(x, a->file.p + MACH_HEADER_64_SIZE, a->sizeofcmds);
    for (size_t i = 0; i < a->command_count; i++) {
        uint8_t *c = x + a->commands[i].at - MACH_HEADER_64_SIZE;
        const uint8_t *d = b->file.p + a->commands[i].at;

        if (i == a->linkedit->command) {
            memcpy(c + VMSIZE, d + VMSIZE, 8);
            memcpy(c + FILESIZE, d + FILESIZE, 8);
        } else if (a->commands[i].cmd == LC_CODE_SIGNATURE) {
            memcpy(c + DATASIZE, d + DATASIZE, 4);
        }
    }
    return memcmp(x, b->file.p + MACH_HEADER_64_SIZE, a->sizeofcmds) == 0;
}

/* Whether both signatures have the same digest for each page that is the same in both files. */
static bool same_digests(const struct macho_file *a, struct exti_span x, const struct macho_file *b,
                         struct exti_span y)
{
    enum { HASH_OFFSET = 16, SLOTS = 28, HASH_SIZE = 32 };
    uint64_t limit = a->pieces[MACHO_SIGNATURE].s.base - a->file.base;

    if (big(x, SLOTS, 4) != (limit + CS_PAGE_SIZE - 1) / CS_PAGE_SIZE)
        return false;
    for (uint64_t i = 0; i * CS_PAGE_SIZE < limit; i++) {
        uint64_t at = i * CS_PAGE_SIZE, n = limit - at < CS_PAGE_SIZE ? limit - at : CS_PAGE_SIZE;
        uint64_t p = big(x, HASH_OFFSET, 4) + i * HASH_SIZE;
        uint64_t q = big(y, HASH_OFFSET, 4) + i * HASH_SIZE;

        if (p + HASH_SIZE > x.n || q + HASH_SIZE > y.n)
            return false;
        if (memcmp(a->file.p + at, b->file.p + at, (size_t)n) == 0 &&
            memcmp(x.p + p, y.p + q, HASH_SIZE) != 0)
            return false;
    }
    return true;
}

/* How the signature differs from the old one: the known differences, or NULL if one is unknown.
 *
 *   __text's size for __TEXT's   since ld-1053 Apple's linker writes __text's size as that of the
 *                                executable segment; older ones, lld, strip and codesign write
 *                                the segment's
 *   digests not aligned          Apple's linkers and strip put them right behind the identifier
 *   size not rounded             some tools end the file with the last digest
 *   codesign's                   has an empty CMS blob, requirements that a copy keeps, spare
 *                                room, no CS_LINKER_SIGNED, and lately pages of 16 KiB */
static const char *signature_class(const struct macho_file *f, const struct macho_signature *old,
                                   const struct macho_file *g, const struct macho_signature *now)
{
    enum { MANY_BLOBS = 8, EXEC_LIMIT = 72, LARGE_PAGES = 14 };
    static const uint32_t same[] = {8, 12, 20, 24, 28, 32, 36, 44, 48, 56, 64, 80, 84};
    const struct exti_span x = old->code_directory, y = now->code_directory;
    const struct exti_span whole = f->pieces[MACHO_SIGNATURE].s;
    static char text[256];

    text[0] = 0;
    if (strcmp(old->identifier, now->identifier) != 0)
        return NULL;
    if (!(old->code_dir_flags & CS_LINKER_SIGNED) && big(whole, MANY_BLOBS, 4) > 1) {
        if (old->page_shift == LARGE_PAGES)
            return "codesign's signature, of pages of 16 KiB";
        return same_digests(f, x, g, y) ? "codesign's signature, in its layout" : NULL;
    }
    if (!same_digests(f, x, g, y))
        return NULL;
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        if (big(x, same[i], 4) != big(y, same[i], 4))
            return NULL;
    if (big(x, EXEC_LIMIT, 8) == text_section_size(f))
        strcat(text, "the signature has __text's size for __TEXT's; ");
    else if (big(x, EXEC_LIMIT, 8) != big(y, EXEC_LIMIT, 8))
        return NULL;
    if (x.base - whole.base != y.base - g->pieces[MACHO_SIGNATURE].s.base ||
        big(x, 16, 4) != big(y, 16, 4))
        strcat(text, "its digests are not aligned; ");
    if (whole.n % 16)
        strcat(text, "its size is not rounded; ");
    if (text[0])
        text[strlen(text) - 2] = 0;
    return text[0] ? text : NULL;
}

/* The known classes of difference; anything else is a failure. */
static const char *classify(const struct macho_build *b, const struct macho_file *f,
                            const struct exti_buf *now)
{
    static const char different[] = "DIFFERENT";
    const struct exti_span old = f->pieces[MACHO_SIGNATURE].s;
    const char *class = NULL;
    struct macho_signature s;
    struct macho_file g;

    if (now->n == f->file.n && memcmp(now->p, f->file.p, now->n) == 0)
        return "identical";
    if (!old.n || exti__macho_open(exti__span(now->p, now->n), &g, &error))
        return different;
    if (same_commands(f, &g) && !exti__macho_signature_read(&g, &s, &error) &&
        memcmp(now->p + f->commands_end, f->file.p + f->commands_end,
               old.base - f->file.base - f->commands_end) == 0)
        class = signature_class(f, &b->signature, &g, &s);
    exti__macho_close(&g);
    return class ? class : different;
}

static void again(const char *path, struct exti_span slice)
{
    struct exti_buf out = exti__buf(slice.n * 2 + 65536);
    struct macho_build b = {.opts = NULL};
    struct macho_file f, whole;

    if (exti__macho_open(slice, &f, &error) || exti__macho_open(slice, &whole, &error)) {
        failed(path);
        return;
    }
    b.f = &f;
    b.commands = exti__buf(slice.n);
    if (build_again(&b, &f, &out))
        failed(path);
    else
        printf("%s\t%s\t%s\n", exti__macho_arch(f.cputype, f.cpusubtype), path,
               classify(&b, &whole, &out));
    for (size_t i = 0; i < MACHO_PIECES; i++)
        exti__buf_free(&b.pieces[i].data);
    exti__buf_free(&b.commands);
    exti__buf_free(&out);
    exti__macho_close(&f);
    exti__macho_close(&whole);
}

static void again_file(const char *path)
{
    struct macho_fat fat;
    size_t size;
    uint8_t *p = read_file(path, &size);

    if (exti__macho_fat_open(exti__span(p, size), &fat, &error)) {
        failed(path);
    } else {
        for (size_t i = 0; i < fat.count; i++)
            again(path, fat.slices[i].s);
        exti__macho_fat_close(&fat);
    }
    free(p);
}

/* ---- everything moved ------------------------------------------------------------------------ */

static uint64_t most_room(const struct exti_image *im)
{
    struct exti_image_info info = {.size = sizeof info};
    const struct exti_image *slice;
    uint64_t most = 0;

    for (size_t i = 0; (slice = exti_image_slice(im, i)) != NULL; i++) {
        exti_image_info(slice, &info);
        most = info.header_room > most ? info.header_room : most;
    }
    exti_image_info(im, &info);
    return info.header_room > most ? info.header_room : most;
}

/* The room ladder may free the length of some commands; the name is longer than all of them. */
static char *long_name(const char *begin, uint64_t room)
{
    size_t length = (size_t)room + 4096, n = strlen(begin);
    char *name = malloc(n + length + 16);

    if (!name)
        exit(2);
    memcpy(name, begin, n);
    for (size_t i = 0; i < length; i++)
        name[n + i] = i % 64 ? 'x' : '/';
    strcpy(name + n + length, "/library.dylib");
    return name;
}

static void move(char **field, const char *library)
{
    struct exti_rewrite_opts opts = {.size = sizeof opts, .flags = EXTI_RW_CLEAR_UNIQUE};
    struct exti_needed needed = {0};
    struct exti_image *im;
    char *name;

    if (exti_inspect(field[0], &im, &error)) {
        failed(field[0]);
        return;
    }
    name = long_name("@loader_path", most_room(im));
    needed.to = opts.bind_name = name;
    opts.needed = &needed;
    opts.needed_count = 1;
    opts.bind_file = library;
    if (exti_rewrite(field[0], field[1], &opts, &error))
        failed(field[0]);
    else
        printf("%s\t%s\t%s\n", field[0], field[1], name);
    free(name);
    exti_image_free(im);
}

static int print_finding(void *user, const struct exti_error *finding)
{
    printf("%s: 0x%llx: %s\n", (const char *)user, (unsigned long long)finding->offset,
           finding->message);
    failures++;
    return 0;
}

static void judge(char **field, const char *unused)
{
    size_t findings;

    (void)unused;
    if (exti_verify(field[1], field[0], print_finding, field[0], &findings, &error))
        failed(field[0]);
}

/* ---- LIEF ------------------------------------------------------------------------------------ */

static size_t lief_readable, lief_blind;

static bool lief_is(const char *line, const char *kind)
{
    return strncmp(line, kind, strlen(kind)) == 0;
}

/* Both have the same lines except for names, and each slice of the copy one more library. */
static bool lief_same(const char *a, const char *b)
{
    static const char *const kinds[] = {"id ", "library ", "rpath "};

    while (*b) {
        size_t n = strcspn(a, "\n"), m = strcspn(b, "\n");
        bool same = n == m && strncmp(a, b, n) == 0;

        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
            same |= lief_is(a, kinds[i]) && lief_is(b, kinds[i]);
        if (!same && !lief_is(b, "library "))
            return false;
        if (same)
            a += n + (a[n] != 0);
        b += m + (b[m] != 0);
    }
    return *a == 0;
}

static void read_by_lief(char **field, const char *unused)
{
    static char a[65536], b[65536];

    (void)unused;
    if (!lief_read_macho(field[0], a, sizeof a)) {
        printf("# LIEF cannot read %s\n", field[0]);
        lief_blind++;
        return;
    }
    lief_readable++;
    if (!lief_read_macho(field[1], b, sizeof b) || !lief_same(a, b)) {
        printf("%s: LIEF sees\n%sand in the copy\n%s", field[0], a, b);
        failures++;
    }
}

static void each_line(void (*each)(char **field, const char *user), const char *user)
{
    char *line = NULL, *field[2];
    size_t cap = 0;

    while (getline(&line, &cap, stdin) > 0) {
        line[strcspn(line, "\n")] = 0;
        field[0] = line;
        field[1] = strchr(line, '\t');
        if (!field[1]) {
            fprintf(stderr, "no tab in '%.100s'\n", line);
            exit(2);
        }
        *field[1]++ = 0;
        field[1][strcspn(field[1], "\t")] = 0;
        each(field, user);
    }
    free(line);
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";

    if (strcmp(mode, "--again") == 0) {
        for (int i = 2; i < argc; i++)
            again_file(argv[i]);
    } else if (strcmp(mode, "--move") == 0 && argc == 3) {
        each_line(move, argv[2]);
    } else if (strcmp(mode, "--judge") == 0) {
        each_line(judge, NULL);
    } else if (strcmp(mode, "--lief") == 0) {
        if (!lief_found())
            return 3;
        each_line(read_by_lief, NULL);
        printf("%zu files, and %zu that it cannot read before they are copied\n", lief_readable,
               lief_blind);
    } else {
        fprintf(stderr, "usage: see the top of rebuild.c\n");
        return 2;
    }
    return failures > 0;
}
