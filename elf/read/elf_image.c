/* Describing a shared object: the read operation. */
#include "elf/read/elf_image.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "elf/read/elf_open.h"
#include "elf/read/elf_reloc.h"
#include "elf/read/elf_shareable.h"
#include "elf/read/elf_version.h"
#include "elf/read/elf_withheld.h"

/* The names that readelf uses, in their common short forms. */
static const char *machine_name(uint16_t machine)
{
    static const struct {
        uint16_t machine;
        const char *name;
    } names[] = {
        {EM_X86_64, "x86-64"},    {EM_386, "i386"},       {EM_AARCH64, "AArch64"},
        {EM_ARM, "ARM"},          {EM_RISCV, "RISC-V"},   {EM_PPC64, "PowerPC64"},
        {EM_PPC, "PowerPC"},      {EM_S390, "s390x"},     {EM_MIPS, "MIPS"},
        {EM_SPARCV9, "SPARC v9"}, {EM_SPARC, "SPARC"},    {EM_IA_64, "IA-64"},
        {EM_ALPHA, "Alpha"},      {EM_PARISC, "PA-RISC"}, {EM_68K, "m68k"},
        {EM_SH, "SuperH"},        {258, "LoongArch"},
    };

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].machine == machine)
            return names[i].name;
    return "unknown";
}

static uint32_t symbol_flags(const GElf_Sym *s, bool defined)
{
    uint32_t flags = defined ? EXTI_SYM_EXPORT : 0;
    int bind = GELF_ST_BIND(s->st_info), type = GELF_ST_TYPE(s->st_info);

    if (bind == STB_WEAK)
        flags |= EXTI_SYM_WEAK;
    if (bind == STB_GNU_UNIQUE)
        flags |= EXTI_SYM_UNIQUE;
    if (type == STT_TLS)
        flags |= EXTI_SYM_TLS;
    if (type == STT_FUNC || type == STT_GNU_IFUNC)
        flags |= EXTI_SYM_FUNCTION;
    return flags;
}

static int add_dynamic_symbol(const struct elf_version_names *v, size_t i, struct exti_image *im,
                              struct exti_error *err)
{
    const GElf_Sym *s = &v->f->sym[i];
    int bind = GELF_ST_BIND(s->st_info), visibility = GELF_ST_VISIBILITY(s->st_other);
    bool defined = s->st_shndx != SHN_UNDEF;
    struct exti_image_symbol out = {0};
    int rc;

    if (bind != STB_GLOBAL && bind != STB_WEAK && bind != STB_GNU_UNIQUE)
        return 0;
    if (defined && visibility != STV_DEFAULT && visibility != STV_PROTECTED)
        return 0;
    rc = exti__elf_string(v->f, s->st_name, "symbol name", &out.name, err);
    if (rc)
        return rc;
    if (!*out.name || exti__elf_is_version_node(v, i, out.name))
        return 0;
    out.version = exti__elf_sym_version(v, i);
    out.flags = symbol_flags(s, defined);
    if (bind == STB_GNU_UNIQUE)
        im->info.flags |= EXTI_IMAGE_UNIQUE;
    return exti__image_add_symbol(im, out, err);
}

static int add_dynamic_symbols(const struct elf_file *f, struct exti_image *im,
                               struct exti_error *err)
{
    struct elf_version_names v;
    int rc = exti__elf_version_names(f, &v, err);

    if (rc)
        return rc;
    for (size_t i = 1; !rc && i < f->sym_count; i++)
        rc = add_dynamic_symbol(&v, i, im, err);
    exti__free(v.names);
    return rc;
}

/* Adds the facts that one dynamic entry gives. */
static int add_dynamic_entry(const struct elf_file *f, const GElf_Dyn *d, struct exti_image *im,
                             struct exti_error *err)
{
    struct exti_image_info *info = &im->info;
    const uint64_t v = d->d_un.d_val;
    const char *needed;
    int rc;

    switch (d->d_tag) {
    case DT_NEEDED:
        rc = exti__elf_string(f, v, "DT_NEEDED", &needed, err);
        return rc ? rc : exti__image_add_needed(im, needed, 0, err);
    case DT_SONAME:
        return exti__elf_string(f, v, "DT_SONAME", &info->id, err);
    case DT_RPATH:
        return exti__elf_string(f, v, "DT_RPATH", &info->rpath, err);
    case DT_RUNPATH:
        return exti__elf_string(f, v, "DT_RUNPATH", &info->runpath, err);
    case DT_FINI_ARRAYSZ:
        im->finalisers = (size_t)(v / (f->is64 ? 8 : 4));
        return 0;
    case DT_SYMBOLIC:
        info->flags |= EXTI_IMAGE_SYMBOLIC;
        return 0;
    case EXTI_DT_INIT:
    case EXTI_DT_INIT_ARRAY:
        info->flags |= EXTI_IMAGE_WITHHELD;
        return 0;
    case DT_TEXTREL:
        info->flags |= EXTI_IMAGE_TEXTREL;
        return 0;
    case DT_BIND_NOW:
        info->flags |= EXTI_IMAGE_BIND_NOW;
        return 0;
    case DT_FLAGS:
        info->flags |= (v & DF_SYMBOLIC ? EXTI_IMAGE_SYMBOLIC : 0) |
                       (v & DF_TEXTREL ? EXTI_IMAGE_TEXTREL : 0) |
                       (v & DF_BIND_NOW ? EXTI_IMAGE_BIND_NOW : 0);
        if (v & DF_STATIC_TLS)
            im->static_tls = "DF_STATIC_TLS";
        return 0;
    case DT_FLAGS_1:
        info->flags |= (v & DF_1_NODELETE ? EXTI_IMAGE_NODELETE : 0) |
                       (v & DF_1_NOW ? EXTI_IMAGE_BIND_NOW : 0) |
                       (v & DF_1_NODEFLIB ? EXTI_IMAGE_NODEFLIB : 0);
        return 0;
    default:
        return 0;
    }
}

/* Sets the build-id to the descriptor of NT_GNU_BUILD_ID, in hex, if the notes in `s` have one.
 * Thousands of headers of a hostile file may share the same bytes, so `left` bounds the number of
 * notes by the file's size. */
static int find_build_id(const struct elf_file *f, struct exti_span s, uint64_t align,
                         uint64_t *left, struct exti_image *im, struct exti_error *err)
{
    static const char hex[] = "0123456789abcdef";
    struct exti_cur c = exti__cur(s, f->big_endian);

    for (; *left && !im->build_id && c.at < s.n; --*left) {
        uint32_t name = exti__cur_u32(&c), desc = exti__cur_u32(&c), type = exti__cur_u32(&c);
        size_t name_at = c.at, desc_at;

        exti__cur_skip(&c, name);
        exti__cur_align(&c, align == 8 ? 8 : 4);
        desc_at = c.at;
        exti__cur_skip(&c, desc);
        if (c.failed)
            return 0; /* loaders ignore notes, so a malformed one is no fault of the file */
        if (type == NT_GNU_BUILD_ID && name == 4 && memcmp(s.p + name_at, "GNU", 4) == 0) {
            im->build_id = exti__alloc((size_t)desc * 2 + 1);
            if (!im->build_id)
                return exti__fail_nomem(err);
            for (size_t i = 0; i < desc; i++) {
                im->build_id[2 * i] = hex[s.p[desc_at + i] >> 4];
                im->build_id[2 * i + 1] = hex[s.p[desc_at + i] & 15];
            }
            im->build_id[(size_t)desc * 2] = 0;
        }
        exti__cur_align(&c, align == 8 ? 8 : 4);
    }
    im->info.build_id = im->build_id;
    return 0;
}

static int add_elf_build_id(const struct elf_file *f, struct exti_image *im, struct exti_error *err)
{
    uint64_t left = f->file.n;
    struct exti_span s;
    int rc = 0;

    for (size_t i = 0; !rc && !im->build_id && i < f->phnum; i++)
        if (f->phdr[i].p_type == PT_NOTE &&
            !exti__span_sub(f->file, f->phdr[i].p_offset, f->phdr[i].p_filesz, "", &s, NULL))
            rc = find_build_id(f, s, f->phdr[i].p_align, &left, im, err);
    /* A rewrite may have given the PT_NOTE away; the section stays. */
    for (size_t i = 0; !rc && !im->build_id && i < f->shnum; i++)
        if (f->shdr[i].sh_type == SHT_NOTE &&
            !exti__span_sub(f->file, f->shdr[i].sh_offset, f->shdr[i].sh_size, "", &s, NULL))
            rc = find_build_id(f, s, f->shdr[i].sh_addralign, &left, im, err);
    return rc;
}

static int add_shareable(const struct elf_file *f, struct exti_image *im, struct exti_error *err)
{
    const bool text_relocations = im->info.flags & EXTI_IMAGE_TEXTREL;
    int rc = exti__elf_shareable(f, text_relocations, &im->shareable, err);

    if (!rc) {
        im->info.shared_size = exti__parts_size(&im->shareable.holes);
        im->info.full = im->shareable.none;
    }
    return rc;
}

static int describe_elf_file(const struct elf_file *f, struct exti_image *im,
                             struct exti_error *err)
{
    int rc = 0;

    im->info.format = "ELF";
    im->info.machine = machine_name(f->ehdr.e_machine);
    if (f->ehdr.e_machine == EM_S390 && !f->is64)
        im->info.machine = "s390";
    im->info.bits = f->is64 ? 64 : 32;
    im->info.big_endian = f->big_endian;
    im->gnu_buckets = f->gnu_hash.present ? f->gnu.buckets : 0;
    for (size_t i = 0; i < f->phnum; i++) {
        if (f->phdr[i].p_type == PT_TLS) {
            im->info.tls_size = f->phdr[i].p_memsz;
            im->info.tls_align = f->phdr[i].p_align;
        }
        if (f->phdr[i].p_type == PT_INTERP)
            im->info.flags |= EXTI_IMAGE_INTERP;
    }
    for (size_t i = 0; !rc && i < f->dyn_count; i++)
        rc = add_dynamic_entry(f, &f->dyn[i], im, err);
    /* GNU ld sets the flag on some machines only, arm64 not among them. */
    if (!rc && !im->static_tls)
        rc = exti__elf_static_tls(f, &im->static_tls, err);
    if (im->static_tls)
        im->info.flags |= EXTI_IMAGE_STATIC_TLS;
    if (!rc)
        rc = add_shareable(f, im, err);
    if (!rc)
        rc = add_elf_build_id(f, im, err);
    return rc ? rc : add_dynamic_symbols(f, im, err);
}

int exti__elf_read(struct exti_span file, struct exti_image *im, struct exti_error *err)
{
    struct elf_file f;
    int rc = exti__elf_open(file, &f, err);

    if (rc)
        return rc;
    rc = describe_elf_file(&f, im, err);
    exti__elf_close(&f);
    if (rc)
        exti__image_clear(im);
    return rc;
}
