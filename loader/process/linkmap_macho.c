/* Reads what dyld keeps in memory.  Which slots it has filled is read from the file: in memory a
 * chain of fixups is overwritten as dyld follows it. */
#include "loader/process/linkmap.h"

#include <mach-o/dyld.h>
#include <mach-o/loader.h>
#include <string.h>

#include "base/error.h"
#include "base/os/fs_map.h"
#include "loader/process/guarded_dl.h"
#include "macho/macho_format.h"

/* The lowest bits of a handle hold the mode of its dlopen (dyld, DyldAPIs.cpp,
 * handleFromLoader). */
#define HANDLE_MODE ((uintptr_t)3)

static bool same_handle(void *a, void *b)
{
    return (((uintptr_t)a ^ (uintptr_t)b) & ~HANDLE_MODE) == 0;
}

static bool is_handle_of(void *handle, const char *path)
{
    void *h = exti__dlopen(path, RTLD_LAZY | RTLD_NOLOAD);

    if (h)
        exti__dlclose(h);
    return h && same_handle(h, handle);
}

/* dyld has no call that gives a handle's header.  Searches from the newest library, the
 * likeliest. */
int exti__loaded_from_handle(void *handle, struct exti_loaded *out, struct exti_error *err)
{
    for (uint32_t i = _dyld_image_count(); i-- > 0;) {
        const struct mach_header *header = _dyld_get_image_header(i);
        const char *path = _dyld_get_image_name(i);

        if (!header || !path || !is_handle_of(handle, path))
            continue;
        *out = (struct exti_loaded){
            .handle = handle, .path = path, .base = (uintptr_t)header, .inside = (uintptr_t)header};
        return 0;
    }
    return exti__fail(err, EXTI_E_LOAD, EXTI_NO_OFFSET, "is not in dyld's list of images");
}

/* ---- load commands ---- */

static const struct mach_header_64 *header_of(const struct exti_loaded *lib)
{
    return (const void *)lib->base;
}

/* Calls `each` for the commands in order, and returns its first result that is not NULL. */
static const void *each_command(const struct exti_loaded *lib,
                                const void *(*each)(void *user, const struct load_command *c),
                                void *user)
{
    const struct mach_header_64 *header = header_of(lib);
    const struct load_command *c = (const void *)(header + 1);
    const void *found = NULL;

    for (uint32_t i = 0; i < header->ncmds && !found; i++) {
        found = each(user, c);
        c = (const void *)((const char *)c + c->cmdsize);
    }
    return found;
}

/* ---- symbols ---- */

const char *exti__c_name(const char *file_name)
{
    return file_name + (file_name[0] == '_');
}

bool exti__loaded_defines(const struct exti_loaded *lib, const char *name)
{
    void *p = exti__dlsym(lib->handle, name);
    Dl_info info;

    return p && dladdr(p, &info) && (uintptr_t)info.dli_fbase == lib->base;
}

bool exti__address_is_symbol(uintptr_t address, const char *name)
{
    Dl_info info;

    return dladdr((void *)address, &info) && info.dli_sname &&
           (uintptr_t)info.dli_saddr == address && strcmp(info.dli_sname, name) == 0;
}

static const void *nth_needed(void *user, const struct load_command *c)
{
    const struct dylib_command *d = (const void *)c;
    size_t *left = user;

    if (c->cmd != LC_LOAD_DYLIB && c->cmd != LC_LOAD_WEAK_DYLIB && c->cmd != LC_REEXPORT_DYLIB &&
        c->cmd != LC_LOAD_UPWARD_DYLIB)
        return NULL;
    return (*left)-- ? NULL : (const char *)c + d->dylib.name.offset;
}

const char *exti__loaded_needed(const struct exti_loaded *lib, size_t i)
{
    return each_command(lib, nth_needed, &i);
}

/* dyld expands @rpath for whoever calls dlopen, and looks a bare name up along no path of the
 * file. */
const char *exti__loaded_search_path(const struct exti_loaded *lib)
{
    (void)lib;
    return NULL;
}

/* ---- references ---- */

struct references {
    const struct exti_loaded *lib;
    int (*each)(void *user, const struct exti_reference *ref);
    void *user;
};

static int on_named_slot(void *user, const struct exti_macho_slot *slot)
{
    const struct references *r = user;
    struct exti_reference ref = {.name = exti__c_name(slot->name),
                                 .kind = EXTI_REF_ADDRESS,
                                 .slot = (uintptr_t *)(r->lib->base + slot->offset),
                                 .addend = (uintptr_t)slot->addend,
                                 .weak = slot->weak_import,
                                 .defined_here = slot->defined_here,
                                 .unique = slot->defined_here};

    return r->each(r->user, &ref);
}

int exti__loaded_references(const struct exti_loaded *lib, struct exti_passed *passed,
                            int (*each)(void *user, const struct exti_reference *ref), void *user,
                            struct exti_error *err)
{
    const struct mach_header_64 *header = header_of(lib);
    struct references r = {lib, each, user};
    struct exti_mapping m;
    int rc = exti__fs_map(lib->path, &m, NULL, err);

    (void)passed;
    if (rc)
        return rc;
    rc = exti__macho_named_slots(exti__span(m.p, m.n), (uint32_t)header->cputype,
                                 (uint32_t)header->cpusubtype, on_named_slot, &r, err);
    if (rc)
        exti__error_file(err, lib->path);
    exti__fs_unmap(&m);
    return rc;
}

/* An image reaches thread-local variables through its own descriptors (S_THREAD_LOCAL_VARIABLES),
 * never through slots that hold an offset. */
size_t exti__loaded_tls_module(const struct exti_loaded *lib)
{
    (void)lib;
    return 0;
}

/* ---- layout ---- */

struct extent {
    struct exti_layout layout;
    uint64_t start; /* of __TEXT, as linked */
    uintptr_t base;
};

static const void *widen_extent(void *user, const struct load_command *c)
{
    const struct segment_command_64 *s = (const void *)c;
    struct extent *e = user;
    uintptr_t lo, hi;

    if (c->cmd != LC_SEGMENT_64)
        return NULL;
    if (strcmp(s->segname, SEG_TEXT) == 0)
        e->start = s->vmaddr; /* the first segment of every dylib and bundle */
    lo = e->base + (uintptr_t)(s->vmaddr - e->start);
    hi = lo + (uintptr_t)s->vmsize;
    if (hi > e->layout.hi)
        e->layout.hi = hi;
    if (strcmp(s->segname, "__DATA_CONST") == 0) {
        e->layout.relro_lo = lo;
        e->layout.relro_hi = hi;
    }
    return NULL;
}

struct exti_layout exti__loaded_layout(const struct exti_loaded *lib)
{
    struct extent e = {.layout = {.lo = lib->base}, .base = lib->base};

    each_command(lib, widen_extent, &e);
    return e.layout;
}
