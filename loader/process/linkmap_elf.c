/* Reads what ld.so (glibc, musl) keeps in memory.  It has validated these structures when it mapped
 * the file, so they are trusted, unlike files. */
#define _GNU_SOURCE /* dlinfo, dl_iterate_phdr */
#include "loader/process/linkmap.h"

#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"
#include "loader/process/gnu_hash_elf.h"
#include "loader/process/guarded_dl.h"

#if defined(__GLIBC__)
/* RTLD_DI_PHDR of glibc 2.36; an earlier one refuses it. */
#define DLINFO_PHDR 11
#if __GLIBC_PREREQ(2, 35)
#define HAVE_FIND_OBJECT
#endif
#endif

#define SYMBOL_BIND(info) ELF64_ST_BIND(info) /* the same for both classes */

/* glibc adds the load address to the pointers in a writable dynamic section, musl never does. */
static const void *dynamic_pointer(uintptr_t base, ElfW(Addr) value)
{
    return (const void *)(value < base ? base + value : value);
}

static void read_dynamic_tag(struct exti_loaded *lib, const ElfW(Dyn) * d, bool *plt_rela)
{
    const void *p = dynamic_pointer(lib->base, d->d_un.d_ptr);

    switch (d->d_tag) {
    case DT_SYMTAB:
        lib->symbols = p;
        break;
    case DT_STRTAB:
        lib->strings = p;
        break;
    case DT_GNU_HASH:
        lib->gnu_hash = p;
        break;
    case DT_HASH:
        lib->sysv_hash = p;
        break;
    case DT_RELA:
    case DT_REL:
        lib->relocs[0] = p;
        lib->reloc_addends[0] = d->d_tag == DT_RELA;
        break;
    case DT_RELASZ:
    case DT_RELSZ:
        lib->reloc_size[0] = d->d_un.d_val;
        break;
#ifdef __GLIBC__
    /* That many it applies as such, whatever they are (elf_dynamic_do_Rel); musl looks at each. */
    case DT_RELCOUNT:
        lib->relative_count[0] = d->d_un.d_val;
        break;
    case DT_RELACOUNT:
        lib->relative_count[1] = d->d_un.d_val;
        break;
#endif
    case DT_JMPREL:
        lib->relocs[1] = p;
        break;
    case DT_PLTRELSZ:
        lib->reloc_size[1] = d->d_un.d_val;
        break;
    case DT_VERSYM:
        lib->symbol_versions = p;
        break;
    case DT_VERNEED:
        lib->needed_versions = p;
        break;
    case DT_PLTREL:
        *plt_rela = d->d_un.d_val == DT_RELA;
        break;
    default:
        break;
    }
}

/* False if the library has no dynamic symbols. */
static bool read_dynamic(const char *path, uintptr_t base, const ElfW(Dyn) * dynamic,
                         struct exti_loaded *out)
{
    *out = (struct exti_loaded){
        .path = path, .base = base, .dynamic = dynamic, .inside = (uintptr_t)dynamic};
    for (const ElfW(Dyn) *d = dynamic; d->d_tag != DT_NULL; d++)
        read_dynamic_tag(out, d, &out->reloc_addends[1]);
    return out->symbols && out->strings;
}

int exti__loaded_from_handle(void *handle, struct exti_loaded *out, struct exti_error *err)
{
    struct exti_loaded lib;
    struct link_map *map;

    if (dlinfo(handle, RTLD_DI_LINKMAP, &map))
        return exti__fail(err, EXTI_E_LOAD, EXTI_NO_OFFSET, "no link map: %s", dlerror());
    if (!read_dynamic(map->l_name, map->l_addr, map->l_ld, &lib))
        return exti__fail(err, EXTI_E_LOAD, EXTI_NO_OFFSET, "has no dynamic symbols");
    lib.handle = handle;
    *out = lib;
    return 0;
}

/* ---- symbols ---- */

const char *exti__c_name(const char *file_name)
{
    return file_name;
}

/* A symbol by name, in any version; or the version that has a certain value. */
struct wanted {
    const char *name;
    const ElfW(Addr) * value; /* NULL: any */
    bool oldest;              /* only the version that a reference without one gets */
};

/* glibc, check_match */
static bool is_oldest(const struct exti_loaded *lib, const ElfW(Sym) * s)
{
    const ElfW(Half) *versions = lib->symbol_versions;

    return versions && (versions[s - (const ElfW(Sym) *)lib->symbols] & 0x7fffu) <= 2;
}

static bool is_wanted(const struct exti_loaded *lib, const ElfW(Sym) * s, const struct wanted *w)
{
    return s->st_shndx != SHN_UNDEF && SYMBOL_BIND(s->st_info) != STB_LOCAL &&
           (!w->value || s->st_value == *w->value) && (!w->oldest || is_oldest(lib, s)) &&
           strcmp(lib->strings + s->st_name, w->name) == 0;
}

static const ElfW(Sym) * find_by_gnu_hash(const struct exti_loaded *lib, const struct wanted *w)
{
    const uint32_t *table = lib->gnu_hash, h = exti__gnu_hash(w->name);
    const ElfW(Sym) *symbols = lib->symbols;

    for (uint32_t i = exti__gnu_hash_next(table, h, 0); i; i = exti__gnu_hash_next(table, h, i))
        if (is_wanted(lib, &symbols[i], w))
            return &symbols[i];
    return NULL;
}

/* gABI "Hash Table". */
static const ElfW(Sym) * find_by_sysv_hash(const struct exti_loaded *lib, const struct wanted *w)
{
    const uint32_t *table = lib->sysv_hash, *bucket = table + 2, *chain = bucket + table[0];
    const ElfW(Sym) *symbols = lib->symbols;
    uint32_t h = 0;

    for (const char *p = w->name; *p; p++) {
        h = (h << 4) + (uint8_t)*p;
        h = (h ^ (h >> 24 & 0xf0)) & 0x0fffffff;
    }
    for (uint32_t i = bucket[h % table[0]]; i; i = chain[i])
        if (is_wanted(lib, &symbols[i], w))
            return &symbols[i];
    return NULL;
}

static const ElfW(Sym) * find_symbol(const struct exti_loaded *lib, const struct wanted *w)
{
    if (lib->gnu_hash)
        return lib->gnu_hash[0] ? find_by_gnu_hash(lib, w) : NULL;
    return lib->sysv_hash && lib->sysv_hash[0] ? find_by_sysv_hash(lib, w) : NULL;
}

uintptr_t exti__loaded_symbol(const struct exti_loaded *lib, const char *name)
{
    const struct wanted w = {.name = name};
    const ElfW(Sym) *s = find_symbol(lib, &w);

    return s ? lib->base + s->st_value : 0;
}

bool exti__loaded_defines(const struct exti_loaded *lib, const char *name)
{
    const struct wanted w = {.name = name};

    return find_symbol(lib, &w) != NULL;
}

int exti__loaded_binding(const struct exti_loaded *lib, const char *name)
{
    const struct wanted w = {.name = name};
    const ElfW(Sym) *s = find_symbol(lib, &w);

    return s ? SYMBOL_BIND(s->st_info) : -1;
}

uintptr_t exti__loaded_oldest(const struct exti_loaded *lib, const char *name)
{
    const struct wanted w = {.name = name, .oldest = true};
    const ElfW(Sym) *s = find_symbol(lib, &w);

    return s && ELF64_ST_TYPE(s->st_info) != STT_GNU_IFUNC ? lib->base + s->st_value : 0;
}

bool exti__loaded_has(const struct exti_loaded *lib, const char *name, uintptr_t address)
{
    const ElfW(Addr) value = address - lib->base;
    const struct wanted w = {.name = name, .value = &value};

    return find_symbol(lib, &w) != NULL;
}

/* The same offset means the same version of the symbol.  The target of an indirect function
 * (STT_GNU_IFUNC) has no symbol; dlsym gives it. */
uintptr_t exti__loaded_counterpart(const struct exti_loaded *from, const struct exti_loaded *to,
                                   const char *name, uintptr_t address)
{
    uintptr_t p = to->base + (address - from->base);
    struct exti_layout l;

    if (exti__loaded_has(to, name, p))
        return p;
    if (!exti__loaded_defines(to, name))
        return 0;
    p = (uintptr_t)exti__dlsym(to->handle, name);
    l = exti__loaded_layout(to);
    return p >= l.lo && p < l.hi ? p : 0;
}

const char *exti__loaded_id(const struct exti_loaded *lib)
{
    for (const ElfW(Dyn) *d = lib->dynamic; d->d_tag != DT_NULL; d++)
        if (d->d_tag == DT_SONAME)
            return lib->strings + d->d_un.d_val;
    return NULL;
}

const char *exti__loaded_needed(const struct exti_loaded *lib, size_t i)
{
    for (const ElfW(Dyn) *d = lib->dynamic; d->d_tag != DT_NULL; d++)
        if (d->d_tag == DT_NEEDED && i-- == 0)
            return lib->strings + d->d_un.d_val;
    return NULL;
}

const char *exti__loaded_search_path(const struct exti_loaded *lib)
{
    const char *rpath = NULL;

    for (const ElfW(Dyn) *d = lib->dynamic; d->d_tag != DT_NULL; d++) {
        if (d->d_tag == DT_RUNPATH)
            return lib->strings + d->d_un.d_val;
        if (d->d_tag == DT_RPATH)
            rpath = lib->strings + d->d_un.d_val;
    }
    return rpath;
}

/* ---- thread-local storage ---- */

#ifndef __GLIBC__
struct module_search {
    const struct exti_loaded *lib;
    size_t id;
};

static int match_module(void *user, const struct exti_loaded *lib, const struct exti_layout *layout)
{
    struct module_search *s = user;

    (void)layout;
    if (lib->dynamic == s->lib->dynamic)
        s->id = lib->tls_module;
    return s->id != 0;
}
#endif

/* dlinfo does not need to walk, but musl lacks RTLD_DI_TLS_MODID, an enumerator. */
size_t exti__loaded_tls_module(const struct exti_loaded *lib)
{
#ifdef __GLIBC__
    size_t id = 0;

    dlinfo(lib->handle, RTLD_DI_TLS_MODID, &id);
    return id;
#else
    struct module_search s = {.lib = lib};

    exti__loaded_each(match_module, &s);
    return s.id;
#endif
}

/* ---- layout ---- */

/* Whether the dynamic section lies in a segment that cannot be written to. */
static bool is_dynamic_fixed(const ElfW(Phdr) * ph, size_t count)
{
    const ElfW(Phdr) *dynamic = NULL;

    for (size_t i = 0; i < count; i++)
        if (ph[i].p_type == PT_DYNAMIC)
            dynamic = &ph[i];
    for (size_t i = 0; i < count && dynamic; i++)
        if (ph[i].p_type == PT_LOAD && dynamic->p_vaddr - ph[i].p_vaddr < ph[i].p_memsz)
            return !(ph[i].p_flags & PF_W);
    return false;
}

static struct exti_layout layout_of(uintptr_t base, const ElfW(Phdr) * ph, size_t count)
{
    struct exti_layout l = {.lo = UINTPTR_MAX, .fixed_dynamic = is_dynamic_fixed(ph, count)};
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

    for (; count; ph++, count--) {
        uintptr_t lo = base + ph->p_vaddr, hi = lo + ph->p_memsz;

        if (ph->p_type == PT_LOAD) {
            l.lo = lo < l.lo ? lo : l.lo;
            l.hi = hi > l.hi ? hi : l.hi;
        } else if (ph->p_type == PT_GNU_RELRO) {
            /* glibc, _dl_protect_relro: rounds both ends down to a page. */
            l.relro_lo = lo & ~(page - 1);
            l.relro_hi = hi & ~(page - 1);
        }
    }
    return l;
}

static const ElfW(Dyn) * dynamic_of(const struct dl_phdr_info *info)
{
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            return (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    return NULL;
}

/* The program headers of a library; exti__dl_iterate_phdr gives them in memory that stays. */
struct headers_search {
    const struct exti_loaded *lib;
    const ElfW(Phdr) * first;
    size_t count;
};

static int match_library(struct dl_phdr_info *info, size_t size, void *user)
{
    struct headers_search *s = user;

    (void)size;
    if (dynamic_of(info) != s->lib->dynamic)
        return 0;
    s->first = info->dlpi_phdr;
    s->count = info->dlpi_phnum;
    return 1;
}

static struct headers_search headers_of(const struct exti_loaded *lib)
{
    struct headers_search s = {.lib = lib};
#ifdef DLINFO_PHDR
    int count = dlinfo(lib->handle, DLINFO_PHDR, &s.first);

    if (count > 0) {
        s.count = (size_t)count;
        return s;
    }
#endif
    exti__dl_iterate_phdr(match_library, &s);
    return s;
}

struct exti_layout exti__loaded_layout(const struct exti_loaded *lib)
{
    const struct headers_search s = headers_of(lib);

    return s.count ? layout_of(lib->base, s.first, s.count) : (struct exti_layout){.lo = 0};
}

static struct exti_segment segment_of(const struct exti_loaded *lib, const ElfW(Phdr) * ph)
{
    return (struct exti_segment){.address = lib->base + ph->p_vaddr,
                                 .at = ph->p_offset,
                                 .size = ph->p_filesz,
                                 .protection = (ph->p_flags & PF_R ? PROT_READ : 0) |
                                               (ph->p_flags & PF_W ? PROT_WRITE : 0) |
                                               (ph->p_flags & PF_X ? PROT_EXEC : 0)};
}

bool exti__loaded_segment(const struct exti_loaded *lib, uint64_t at, struct exti_segment *out)
{
    const struct headers_search s = headers_of(lib);

    for (size_t i = 0; i < s.count; i++) {
        const ElfW(Phdr) *ph = &s.first[i];

        if (ph->p_type != PT_LOAD || at < ph->p_offset || at - ph->p_offset >= ph->p_filesz)
            continue;
        *out = segment_of(lib, ph);
        return true;
    }
    return false;
}

bool exti__loaded_variables(const struct exti_loaded *lib, uint64_t at, struct exti_segment *out)
{
    const struct headers_search s = headers_of(lib);
    const ElfW(Phdr) *last = NULL;

    for (size_t i = 0; i < s.count; i++) {
        const ElfW(Phdr) *ph = &s.first[i];

        if (ph->p_type == PT_LOAD && (ph->p_flags & PF_W) && at >= ph->p_offset &&
            at - ph->p_offset < ph->p_memsz)
            last = ph;
    }
    if (!last)
        return false;
    *out = segment_of(lib, last);
    out->size = last->p_memsz;
    return true;
}

bool exti__loaded_next_segment(const struct exti_loaded *lib, const struct exti_segment *after,
                               struct exti_segment *out)
{
    const struct headers_search s = headers_of(lib);

    for (size_t i = 0; i < s.count; i++) {
        const ElfW(Phdr) *ph = &s.first[i];

        if (ph->p_type != PT_LOAD || lib->base + ph->p_vaddr <= after->address)
            continue;
        *out = segment_of(lib, ph);
        return true;
    }
    return false;
}

struct library_visit {
    int (*each)(void *user, const struct exti_loaded *lib, const struct exti_layout *layout);
    void *user;
};

static int visit_library(struct dl_phdr_info *info, size_t size, void *user)
{
    const ElfW(Dyn) *dynamic = dynamic_of(info);
    const struct library_visit *v = user;
    struct exti_loaded lib;
    struct exti_layout layout;

    (void)size;
    if (!dynamic || !read_dynamic(info->dlpi_name, info->dlpi_addr, dynamic, &lib))
        return 0;
    lib.tls_module = info->dlpi_tls_modid;
    layout = layout_of(info->dlpi_addr, info->dlpi_phdr, info->dlpi_phnum);
    return v->each(v->user, &lib, &layout);
}

void exti__loaded_each(int (*each)(void *user, const struct exti_loaded *lib,
                                   const struct exti_layout *layout),
                       void *user)
{
    struct library_visit v = {each, user};

    exti__dl_iterate_phdr(visit_library, &v);
}

static int read_unloads(struct dl_phdr_info *info, size_t size, void *user)
{
    unsigned long long *n = user;

    (void)size;
    *n = info->dlpi_subs;
    return 1;
}

unsigned long long exti__unloads(void)
{
    unsigned long long n = 0;

    exti__dl_iterate_phdr(read_unloads, &n);
    return n;
}

#ifdef HAVE_FIND_OBJECT
bool exti__loaded_at(uintptr_t address, struct exti_loaded *out, struct exti_layout *layout)
{
    struct dl_find_object o;

    if (_dl_find_object((void *)address, &o) ||
        !read_dynamic(o.dlfo_link_map->l_name, o.dlfo_link_map->l_addr, o.dlfo_link_map->l_ld, out))
        return false;
    *layout =
        (struct exti_layout){.lo = (uintptr_t)o.dlfo_map_start, .hi = (uintptr_t)o.dlfo_map_end};
    return true;
}
#else
struct address_search {
    uintptr_t address;
    struct exti_loaded *out;
    struct exti_layout *layout;
    bool found;
};

static int match_address(void *user, const struct exti_loaded *lib,
                         const struct exti_layout *layout)
{
    struct address_search *s = user;

    s->found = s->address >= layout->lo && s->address < layout->hi;
    if (s->found) {
        *s->out = *lib;
        *s->layout = *layout;
    }
    return s->found;
}

bool exti__loaded_at(uintptr_t address, struct exti_loaded *out, struct exti_layout *layout)
{
    struct address_search s = {.address = address, .out = out, .layout = layout};

    exti__loaded_each(match_address, &s);
    return s.found;
}
#endif

bool exti__address_is_symbol(uintptr_t address, const char *name)
{
    Dl_info info;
    void *handle;
    bool is;

    if (!dladdr((void *)address, &info))
        return false;
    handle = exti__dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    if (!handle) /* the program: it has no path to open */
        handle = exti__dlopen(NULL, RTLD_LAZY);
    is = handle && (uintptr_t)exti__dlsym(handle, name) == address;
    if (handle)
        exti__dlclose(handle);
    return is;
}
