/* Making links, and finding one side by the other. */
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/opts.h"
#include "link/collection.h"
#include "link/records.h"
#include "link/repeat.h"

/* ---- tables ---------------------------------------------------------------------------------- */

static int check(const struct exti_links_opts *o, struct exti_error *err)
{
    const struct exti_natives *n = &o->natives;
    const bool toggles = o->toggling.strengthen != NULL, marks = o->marking.keep != NULL;
    const int takes_apart = !!n->clear_weak + !!n->finalise + !!n->clear + !!n->release;

    if (!n->count || !n->add)
        return exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET,
                          "exti_natives: count and add are needed");
    if (marks != (o->marking.survives != NULL) || toggles != (o->toggling.weaken != NULL) ||
        !(marks || toggles))
        return exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET,
                          "exti_links_opts: survives and keep, or strengthen and weaken, or both");
    if (o->base < 0 || o->light < 0 || o->pressure < 0 ||
        (o->light && (o->light <= o->base || !n->free_light)))
        return exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET,
                          "exti_links_opts: numbers are not negative, and light is above base and "
                          "has a free_light");
    if (toggles && (!!o->toggling.refer + !!o->toggling.hub + !!o->toggling.forget) % 3)
        return exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET,
                          "exti_toggling: refer, hub and forget go together");
    if (takes_apart && (takes_apart < 4 || !n->traverse))
        return exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET,
                          "exti_natives: clear_weak, finalise, clear and release go together, and "
                          "with traverse");
    return 0;
}

int exti_links_open(struct exti_links **out, const struct exti_links_opts *opts,
                    struct exti_error *err)
{
    struct exti_links *links;
    struct exti_links_opts o;
    int rc;

    if (!out)
        return exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET, "out is NULL");
    rc = exti__opts_take(&o, sizeof o, opts, "exti_links_opts", err);
    if (!rc)
        rc = check(&o, err);
    if (rc)
        return rc;
    links = exti__calloc(1, sizeof *links);
    if (!links)
        return exti__fail_nomem(err);
    if (!o.base)
        o.base = 1;
    links->o = o;
    links->ask_at = o.pressure;
    links->young = links->dead = links->strong = links->scanned = NO_LINK;
    atomic_init(&links->died, NO_LINK);
    exti__link_table_begin(&links->table);
    *out = links;
    return 0;
}

void exti_links_close(struct exti_links *links)
{
    if (!links)
        return;
    for (uint32_t i = 0; i < links->table.end; i++) {
        const struct link *l = &links->table.links[i];

        if (exti__link_is_live(l))
            links->o.natives.add(links->o.user, l->native, -exti__link_base(links, l));
    }
    exti__collection_end(links);
    exti__circles_free(links);
    exti__repeat_free(links);
    exti__link_table_free(&links->table);
    exti__free(links);
}

int exti_links_info(const struct exti_links *links, struct exti_links_info *out)
{
    struct exti_links_info info = {
        .links = links->table.live,
        .young = links->young_count,
        .dead = links->dead_count,
        .strong = links->strong_count,
        .memory = sizeof *links + exti__link_table_memory(&links->table) +
                  links->repeated.capacity *
                      (sizeof *links->repeated.groups + sizeof *links->repeated.members),
    };

    for (const struct circles *c = links->circles; c; c = c->next) {
        info.circles += c->count;
        info.memory += sizeof *c + c->count * sizeof *c->nodes;
    }
    return exti__opts_give(out, &info, sizeof info);
}

/* ---- links ----------------------------------------------------------------------------------- */

static uint32_t young_bit(const struct exti_links *links)
{
    return exti__links_have_young(links) ? LINK_YOUNG : 0;
}

static void list_young(struct exti_links *links, uint32_t i)
{
    struct link *l = &links->table.links[i];

    if (l->state & LINK_YOUNG) {
        l->next = links->young;
        links->young = i;
        links->young_count++;
    }
}

int exti_link_host(struct exti_links *links, exti_host_word object, void *shell, uint32_t flags)
{
    struct link_table *t = &links->table;
    uint32_t state = LINK_HOST_FIRST | young_bit(links);
    struct link_place by_native, by_host;

    if (flags == EXTI_LINK_LIGHT && links->o.light)
        state |= LINK_IS_LIGHT;
    else if (flags == EXTI_LINK_LOOSE && links->o.toggling.strengthen)
        state |= LINK_LOOSE;
    else if (flags)
        return EXTI_E_ARG;
    if (!object || !shell)
        return EXTI_E_ARG;
    if (!exti__link_make_room(t, state))
        return EXTI_E_NOMEM;
    by_native = exti__link_place_native(t, shell);
    by_host = exti__link_place_host(t, object);
    if (by_native.link != NO_LINK || by_host.link != NO_LINK)
        return EXTI_E_ARG;
    list_young(links, exti__link_add(t, object, shell, state, by_native.at, by_host.at));
    return 0;
}

void exti_link_end(struct exti_links *links, const void *shell)
{
    const uint32_t i = exti__link_find_native(&links->table, shell);

    if (i == NO_LINK || !(links->table.links[i].state & LINK_LOOSE))
        return;
    exti__link_unlist(&links->table, i);
    exti__link_give_back(&links->table, i);
}

int exti_link_native(struct exti_links *links, exti_host_word proxy, void *native)
{
    struct link_table *t = &links->table;
    const uint32_t state = young_bit(links);
    struct link_place by_native;
    uint32_t former;

    if (!proxy || !native)
        return EXTI_E_ARG;
    if (!exti__link_make_room(t, state))
        return EXTI_E_NOMEM;
    by_native = exti__link_place_native(t, native);
    former = by_native.link;
    if (former != NO_LINK && (!links->o.toggling.strengthen ||
                              (t->links[former].state & (LINK_HOST_FIRST | LINK_MARKER))))
        return EXTI_E_ARG;
    list_young(links, exti__link_add(t, proxy, native, state, by_native.at, 0));
    if (former != NO_LINK) {
        exti__repeat_undo(links, former); /* its references were the former proxy's to repeat */
        t->links[former].state |= LINK_REPLACED;
    }
    return 0;
}

void *exti_link_from_host(const struct exti_links *links, exti_host_word object)
{
    const uint32_t i = exti__link_find_host(&links->table, object);

    return i == NO_LINK ? NULL : links->table.links[i].native;
}

exti_host_word exti_link_to_host(const struct exti_links *links, const void *native)
{
    const uint32_t i = exti__link_find_native(&links->table, native);

    return i == NO_LINK ? 0 : links->table.links[i].host;
}

/* ---- dead natives ---------------------------------------------------------------------------- */

void *exti_links_next_dead(struct exti_links *links)
{
    const uint32_t i = links->dead;
    void *native;

    if (i == NO_LINK)
        return NULL;
    native = links->table.links[i].native;
    links->dead = links->table.links[i].next;
    links->dead_count--;
    exti__link_give_back(&links->table, i);
    return native;
}

int exti_link_ending(struct exti_links *links, exti_host_word marker, void *native)
{
    struct link_table *t = &links->table;
    struct link_place by_native;

    if (!native)
        return EXTI_E_ARG;
    if (!exti__link_make_room(t, LINK_MARKER))
        return EXTI_E_NOMEM;
    by_native = exti__link_place_native(t, native);
    if (by_native.link != NO_LINK)
        return EXTI_E_ARG;
    exti__link_add(t, marker, native, LINK_MARKER, by_native.at, 0);
    return 0;
}

void exti_link_ended(struct exti_links *links, const void *native)
{
    const uint32_t i = exti__link_find_native(&links->table, native);

    if (i == NO_LINK || !(links->table.links[i].state & LINK_MARKER))
        return;
    exti__link_unlist(&links->table, i);
    exti__link_give_back(&links->table, i);
}
