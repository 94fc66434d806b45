#define _GNU_SOURCE /* guarded_dl.h */
#include "loader/process/tls_reference.h"

#include "base/error.h"
#include "base/mem.h"
#include "loader/process/guarded_dl.h"
#include "loader/process/tls_descriptor.h"

/* The psABIs' structure tls_index, which a pair of DTPMOD and DTPOFF relocations fills. */
struct tls_index {
    uintptr_t module, offset;
};

void *__tls_get_addr(void *index);

/* RISC-V psABI, "Dynamic Thread Vector": offsets count from there. */
#ifdef __riscv
#define DTV_OFFSET 0x800
#else
#define DTV_OFFSET 0
#endif

/* Where the calling thread's block of the module starts.  A block that has no fixed place yet will
 * never get one. */
static uintptr_t block_start(size_t module)
{
    struct tls_index index = {module, (uintptr_t)0 - DTV_OFFSET};

    return (uintptr_t)__tls_get_addr(&index);
}

static uintptr_t thread_pointer(void)
{
    return (uintptr_t)__builtin_thread_pointer();
}

void *exti__tls_variable(const struct exti_reference *ref)
{
    switch (ref->kind) {
    case EXTI_REF_TLS_MODULE:
        return exti__slot_value(ref) ? __tls_get_addr(ref->slot) : NULL;
    case EXTI_REF_TLS_DESCRIPTOR:
        return (void *)(thread_pointer() + exti__tls_descriptor_call(ref->slot) - ref->addend);
    default:
        return (void *)(thread_pointer() + exti__slot_value(ref) - ref->addend);
    }
}

/* ---- the owner of a variable ---- */

struct owner_search {
    const char *name;         /* of the variable */
    size_t module;            /* the owner's number, or 0: all that define `name` are listed */
    struct exti_loaded *list; /* owned */
    size_t count, cap;
    bool no_memory;
};

static int add_candidate(void *user, const struct exti_loaded *lib,
                         const struct exti_layout *layout)
{
    struct owner_search *s = user;
    struct exti_loaded *p;

    (void)layout;
    if (!lib->tls_module ||
        (s->module ? lib->tls_module != s->module : !exti__loaded_defines(lib, s->name)))
        return 0;
    p = exti__array_room(s->list, s->count, &s->cap, sizeof *p);
    if (!p) {
        s->no_memory = true;
        return 1;
    }
    s->list = p;
    s->list[s->count++] = *lib;
    return 0;
}

/* Whether some version of the symbol is at offset `value` of the library's blocks. */
static bool has_value(const struct exti_loaded *lib, const char *name, uintptr_t value)
{
    return exti__loaded_has(lib, name, lib->base + value);
}

static bool owns(const struct exti_loaded *lib, const char *name, const void *variable)
{
    /* Keeps the module's number its own. */
    void *handle = exti__dlopen(lib->path[0] ? lib->path : NULL, RTLD_LAZY | RTLD_NOLOAD);
    bool is = handle && has_value(lib, name, (uintptr_t)variable - block_start(lib->tls_module));

    if (handle)
        exti__dlclose(handle);
    return is;
}

/* Gives the owner, or one without module.  The C library's function for a thread's block is called
 * after the walk, which holds the loader's lock. */
static int find_owner(const char *name, size_t module, const void *variable,
                      struct exti_loaded *out, struct exti_error *err)
{
    struct owner_search s = {.name = name, .module = module};

    exti__loaded_each(add_candidate, &s);
    *out = (struct exti_loaded){0};
    for (size_t i = 0; i < s.count && !out->tls_module; i++)
        if (module || owns(&s.list[i], name, variable))
            *out = s.list[i];
    exti__free(s.list);
    return s.no_memory ? exti__fail_nomem(err) : 0;
}

/* A reference by module number needs no look at the variable, which would allocate its block. */
static int find_owner_of(const struct exti_reference *ref, struct exti_loaded *out,
                         struct exti_error *err)
{
    const bool by_module = ref->kind == EXTI_REF_TLS_MODULE;

    return find_owner(ref->name, by_module ? exti__slot_value(ref) : 0,
                      by_module ? NULL : exti__tls_variable(ref), out, err);
}

int exti__tls_target(const struct exti_reference *ref, uintptr_t *out, struct exti_error *err)
{
    struct exti_loaded owner;
    int rc = find_owner_of(ref, &owner, err);

    if (!rc)
        *out = owner.inside;
    return rc;
}

int exti__tls_owner(const char *name, const void *variable, uintptr_t *out, struct exti_error *err)
{
    struct exti_loaded owner;
    int rc = find_owner(name, 0, variable, &owner, err);

    if (!rc)
        *out = owner.inside;
    return rc;
}

/* ---- the same variable elsewhere ---- */

/* Gives the offset, in blocks of `to`, of the symbol that is at offset `value` in blocks of
 * `from`. */
static bool counterpart_value(const struct exti_loaded *from, const struct exti_loaded *to,
                              const char *name, uintptr_t *value)
{
    if (!has_value(from, name, *value))
        return false;
    if (has_value(to, name, *value))
        return true;
    if (!exti__loaded_defines(to, name))
        return false;
    *value = (uintptr_t)exti__dlsym(to->handle, name) - block_start(exti__loaded_tls_module(to));
    return has_value(to, name, *value);
}

struct static_search {
    const struct exti_loaded *lib;
    bool found;
};

static int match_static(void *user, const struct exti_reference *ref)
{
    struct static_search *s = user;
    uintptr_t owner;

    s->found = ref->kind == EXTI_REF_TLS_OFFSET && ref->defined_here &&
               !exti__tls_target(ref, &owner, NULL) && owner == s->lib->inside;
    return s->found;
}

/* Whether the library's block is at the same offset in all threads: the loader has to place it so
 * once somebody needs that offset.  The library itself may, which is all that can be seen. */
static bool has_static_block(const struct exti_loaded *lib)
{
    struct static_search s = {.lib = lib, .found = exti__loaded_uses_static_tls(lib)};

    if (!s.found)
        exti__loaded_references(lib, NULL, match_static, &s, NULL);
    return s.found;
}

/* `was`: the variable's offset in the block that the slot leads to now.  Returns the number of
 * words. */
static size_t fill_words(const struct exti_reference *ref, const struct exti_loaded *to,
                         uintptr_t was, uintptr_t value, uintptr_t words[2])
{
    const size_t module = exti__loaded_tls_module(to);

    switch (ref->kind) {
    case EXTI_REF_TLS_MODULE:
        words[0] = module;
        words[1] = ref->slot[1] + (value - was);
        return 2;
    case EXTI_REF_TLS_DESCRIPTOR:
        return exti__tls_descriptor_make(module, value + ref->addend, words) ? 2 : 0;
    default:
        if (!has_static_block(to))
            return 0;
        words[0] = block_start(module) + value - thread_pointer() + ref->addend;
        return 1;
    }
}

int exti__tls_counterpart(const struct exti_reference *ref, const struct exti_loaded *to,
                          uintptr_t words[2], size_t *count, struct exti_error *err)
{
    struct exti_loaded from;
    uintptr_t was, value;
    int rc = find_owner_of(ref, &from, err);

    if (rc)
        return rc;
    *count = 0;
    if (!from.tls_module || !exti__loaded_tls_module(to))
        return 0;
    was = value = (uintptr_t)exti__tls_variable(ref) - block_start(from.tls_module);
    if (counterpart_value(&from, to, ref->name, &value))
        *count = fill_words(ref, to, was, value, words);
    return 0;
}
