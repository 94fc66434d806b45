/* The read operation: describes a dylib or bundle.  Symbol names keep the underscore that C
 * compilers prepend. */
#include "macho/read/macho_image.h"

#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/text.h"
#include "macho/read/macho_arch.h"
#include "macho/read/macho_fat.h"
#include "macho/read/macho_references.h"
#include "macho/read/macho_signature.h"
#include "macho/read/macho_symbols.h"
#include "macho/read/macho_trie.h"
#include "macho/read/macho_withheld.h"

/* ---- load commands ------------------------------------------------------------------- */

static int add_uuid(const struct macho_file *f, struct exti_image *im, struct exti_error *err)
{
    static const char hex[] = "0123456789abcdef";

    if (!f->uuid)
        return 0;
    im->build_id = exti__alloc(33);
    if (!im->build_id)
        return exti__fail_nomem(err);
    for (size_t i = 0; i < 16; i++) {
        im->build_id[2 * i] = hex[f->uuid[i] >> 4];
        im->build_id[2 * i + 1] = hex[f->uuid[i] & 15];
    }
    im->build_id[32] = 0;
    im->info.build_id = im->build_id;
    return 0;
}

/* The flags of a dylib_use_command mean the same as the older commands' kinds; dyld honours
 * either. */
static uint32_t needed_flags(const struct macho_file *f, const struct macho_dylib *d)
{
    const struct macho_command *c = &f->commands[d->command];
    uint32_t flags = c->cmd == LC_LOAD_WEAK_DYLIB     ? EXTI_NEED_WEAK
                     : c->cmd == LC_REEXPORT_DYLIB    ? EXTI_NEED_REEXPORT
                     : c->cmd == LC_LOAD_UPWARD_DYLIB ? EXTI_NEED_UPWARD
                                                      : 0;
    struct exti_cur cur = exti__cur(c->s, false);
    uint32_t use;

    exti__cur_skip(&cur, 8);
    if (exti__cur_u32(&cur) != DYLIB_USE_COMMAND_SIZE || d->timestamp != DYLIB_USE_MARKER)
        return flags;
    exti__cur_skip(&cur, 12);
    use = exti__cur_u32(&cur);
    return flags | (use & DYLIB_USE_WEAK_LINK ? EXTI_NEED_WEAK : 0) |
           (use & DYLIB_USE_REEXPORT ? EXTI_NEED_REEXPORT : 0) |
           (use & DYLIB_USE_UPWARD ? EXTI_NEED_UPWARD : 0);
}

/* Sections that make dyld keep an image loaded (Loader's neverUnload): thread-local variables,
 * Objective-C outside bundles, Swift, and DTrace probes. */
static bool never_unloaded(const struct macho_file *f, const struct macho_section *s)
{
    switch (s->flags & SECTION_TYPE) {
    case S_THREAD_LOCAL_VARIABLES:
    case S_DTRACE_DOF:
        return true;
    default:
        break;
    }
    if (exti__starts_with(s->name, "__objc_imageinfo"))
        return f->filetype != MH_BUNDLE;
    return strcmp(s->segment, "__TEXT") == 0 && exti__starts_with(s->name, "__swift5_");
}

/* Sections whose contents the Objective-C or Swift runtime registers by name. */
static bool has_classes(const struct macho_section *s)
{
    static const char *const names[] = {"__objc_classlist", "__objc_catlist", "__swift5_types"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (s->size && exti__starts_with(s->name, names[i]))
            return true;
    return false;
}

static int add_sections(const struct macho_file *f, struct exti_image *im, struct exti_error *err)
{
    for (size_t i = 0; i < f->section_count; i++) {
        const struct macho_section *s = &f->sections[i];
        uint32_t type = s->flags & SECTION_TYPE;

        if (never_unloaded(f, s))
            im->info.flags |= EXTI_IMAGE_NODELETE;
        if (exti__macho_section_is_withheld(s->flags))
            im->info.flags |= EXTI_IMAGE_WITHHELD;
        if (has_classes(s))
            im->info.flags |= EXTI_IMAGE_CLASSES;
        if ((type == S_THREAD_LOCAL_REGULAR || type == S_THREAD_LOCAL_ZEROFILL) &&
            !exti__add(im->info.tls_size, s->size, &im->info.tls_size))
            return exti__fail(err, EXTI_E_FORMAT, f->file.base + s->at,
                              "section %s,%s: thread-local storage past the address space",
                              s->segment, s->name);
    }
    return 0;
}

static int add_signature(const struct macho_file *f, struct exti_image *im, struct exti_error *err)
{
    struct macho_signature s;
    int rc;

    if (!f->pieces[MACHO_SIGNATURE].s.n)
        return 0;
    rc = exti__macho_signature_read(f, &s, err);
    if (!rc)
        im->info.signature = s.linker_signed               ? EXTI_SIGNATURE_LINKER
                             : s.code_dir_flags & CS_ADHOC ? EXTI_SIGNATURE_ADHOC
                                                           : EXTI_SIGNATURE_IDENTITY;
    return rc;
}

static int add_commands(const struct macho_file *f, struct exti_image *im, struct exti_error *err)
{
    int rc = 0;

    im->info.format = "Mach-O";
    im->info.machine = exti__macho_arch(f->cputype, f->cpusubtype);
    im->info.bits = 64;
    im->info.id = f->id;
    im->info.header_room = f->room_end - f->commands_end;
    im->info.min_os = f->minos;
    im->info.sdk = f->sdk;
    if (f->filetype == MH_BUNDLE)
        im->info.flags |= EXTI_IMAGE_BUNDLE;
    if (f->flags & (MH_WEAK_DEFINES | MH_BINDS_TO_WEAK))
        im->info.flags |= EXTI_IMAGE_UNIQUE;
    for (size_t i = 0; i < f->command_count; i++)
        if (f->commands[i].cmd == EXTI_LC_ROUTINES_64)
            im->info.flags |= EXTI_IMAGE_WITHHELD;
    for (size_t i = 0; !rc && i < f->dylib_count; i++)
        rc = exti__image_add_needed(im, f->dylibs[i].name, needed_flags(f, &f->dylibs[i]), err);
    for (size_t i = 0; !rc && i < f->rpath_count; i++)
        rc = exti__image_add_path(im, f->rpaths[i], err);
    if (!rc)
        rc = add_uuid(f, im, err);
    if (!rc)
        rc = add_sections(f, im, err);
    return rc ? rc : add_signature(f, im, err);
}

/* ---- symbols --------------------------------------------------------------------------------- */

static uint32_t function_flag(const struct macho_file *f, uint64_t vmaddr)
{
    for (size_t i = 0; i < f->section_count; i++) {
        const struct macho_section *s = &f->sections[i];

        if (vmaddr >= s->addr && vmaddr - s->addr < s->size)
            return s->flags & (S_ATTR_PURE_INSTRUCTIONS | S_ATTR_SOME_INSTRUCTIONS)
                       ? EXTI_SYM_FUNCTION
                       : 0;
    }
    return 0;
}

struct exports {
    const struct macho_file *f;
    struct exti_image *im;
    size_t room, used; /* bytes in im->strings */
};

/* A trie stores names in fragments, so the image needs copies of the whole names. */
static int measure_export(void *user, const struct macho_export *e, struct exti_error *err)
{
    struct exports *x = user;

    (void)err;
    x->room += strlen(e->name) + 1;
    return 0;
}

static int add_export(void *user, const struct macho_export *e, struct exti_error *err)
{
    struct exports *x = user;
    struct exti_image_symbol s = {.flags = EXTI_SYM_EXPORT};
    size_t n = strlen(e->name) + 1;

    s.name = memcpy(x->im->strings + x->used, e->name, n);
    x->used += n;
    if (e->flags & EXPORT_SYMBOL_FLAGS_WEAK_DEFINITION)
        s.flags |= EXTI_SYM_WEAK;
    if ((e->flags & EXPORT_SYMBOL_FLAGS_KIND_MASK) == EXPORT_SYMBOL_FLAGS_KIND_THREAD_LOCAL)
        s.flags |= EXTI_SYM_TLS;
    else if ((e->flags & EXPORT_SYMBOL_FLAGS_KIND_MASK) == EXPORT_SYMBOL_FLAGS_KIND_REGULAR &&
             !(e->flags & EXPORT_SYMBOL_FLAGS_REEXPORT))
        s.flags |= function_flag(x->f, x->f->text->vmaddr + e->address);
    return exti__image_add_symbol(x->im, s, err);
}

/* Files that predate export tries: the symbol table lists the exports. */
static int add_defined(const struct macho_file *f, struct exti_image *im, struct exti_error *err)
{
    size_t count = exti__macho_symbol_count(f);

    for (size_t i = 0; i < count; i++) {
        struct exti_image_symbol s = {.flags = EXTI_SYM_EXPORT};
        struct macho_nlist n;
        int rc = exti__macho_symbol(f, i, &n, err);

        if (rc)
            return rc;
        if (n.type & (N_STAB | N_PEXT) || !(n.type & N_EXT) || (n.type & N_TYPE) == N_UNDF)
            continue;
        s.name = n.name;
        if (n.desc & N_WEAK_DEF)
            s.flags |= EXTI_SYM_WEAK;
        if ((n.type & N_TYPE) == N_SECT)
            s.flags |= function_flag(f, n.value);
        rc = exti__image_add_symbol(im, s, err);
        if (rc)
            return rc;
    }
    return 0;
}

static int add_exports(const struct macho_file *f, struct exti_image *im, struct exti_error *err)
{
    struct exports x = {.f = f, .im = im};
    struct exti_span trie = exti__macho_trie(f);
    int rc;

    if (!f->pieces[MACHO_EXPORT].present && !f->pieces[MACHO_EXPORTS_TRIE].present)
        return add_defined(f, im, err);
    rc = exti__macho_trie_walk(trie, measure_export, &x, err);
    if (rc)
        return rc;
    im->strings = exti__alloc(x.room);
    if (!im->strings)
        return exti__fail_nomem(err);
    return exti__macho_trie_walk(trie, add_export, &x, err);
}

static int add_import(void *user, const struct macho_reference *r, struct exti_error *err)
{
    struct exti_image_symbol s = {.name = r->name, .library = r->ordinal};

    if (r->weak_import)
        s.flags |= EXTI_SYM_WEAK;
    return exti__image_add_symbol(user, s, err);
}

/* ---- files and slices ------------------------------------------------------------------------ */

static int describe_slice(struct exti_span slice, struct exti_image *im, struct exti_error *err)
{
    struct macho_file f;
    int rc = exti__macho_open(slice, &f, err);

    if (rc)
        return rc;
    rc = add_commands(&f, im, err);
    if (!rc)
        rc = add_exports(&f, im, err);
    if (!rc)
        rc = exti__macho_references(&f, add_import, im, err);
    exti__macho_close(&f);
    return rc;
}

static void describe_carried(const struct macho_slice *s, struct exti_image *im)
{
    struct exti_cur c = exti__cur(s->s, false);
    uint32_t magic = exti__cur_u32(&c);

    im->info.format = "Mach-O";
    im->info.machine = exti__macho_arch(s->cputype, s->cpusubtype);
    im->info.bits = magic == MH_MAGIC_64 || magic == MH_CIGAM_64 ? 64 : 32;
    im->info.big_endian = magic == MH_CIGAM || magic == MH_CIGAM_64;
}

static int describe_fat(const struct macho_fat *fat, struct exti_image *im, struct exti_error *err)
{
    size_t first = 0;
    int rc = 0;

    while (first < fat->count && !exti__macho_slice_handled(&fat->slices[first]))
        first++;
    if (first == fat->count)
        return exti__fail(err, EXTI_E_UNSUPPORTED, 0,
                          "universal file: no slice is for x86-64 or arm64; the first is for %s",
                          exti__macho_arch(fat->slices[0].cputype, fat->slices[0].cpusubtype));
    rc = describe_slice(fat->slices[first].s, im, err);
    if (rc)
        return rc;
    im->slices = exti__calloc(fat->count, sizeof *im->slices);
    if (!im->slices)
        return exti__fail_nomem(err);
    im->info.slice_count = fat->count;
    for (size_t i = 0; !rc && i < fat->count; i++) {
        if (exti__macho_slice_handled(&fat->slices[i]))
            rc = describe_slice(fat->slices[i].s, &im->slices[i], err);
        else
            describe_carried(&fat->slices[i], &im->slices[i]);
    }
    return rc;
}

int exti__macho_read(struct exti_span file, struct exti_image *im, struct exti_error *err)
{
    struct macho_fat fat;
    int rc = exti__macho_fat_open(file, &fat, err);

    if (rc)
        return rc;
    rc = fat.at_end ? describe_fat(&fat, im, err) : describe_slice(file, im, err);
    exti__macho_fat_close(&fat);
    if (rc)
        exti__image_clear(im);
    return rc;
}
