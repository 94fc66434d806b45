#include "base/shareable.h"

static bool is_within(const struct exti_range *part, const struct exti_range *whole)
{
    return part->at >= whole->at && part->at + part->n <= whole->at + whole->n;
}

void exti__parts_add(struct exti_unread *parts, const struct exti_range *part)
{
    size_t i = parts->count++;

    for (; i && parts->part[i - 1].at > part->at; i--)
        parts->part[i] = parts->part[i - 1];
    parts->part[i] = *part;
}

void exti__shareable_left(const struct exti_shareable *s, const struct exti_plan *plan,
                          struct exti_unread *left_out, struct exti_unread *unloaded)
{
    *left_out = *unloaded = (struct exti_unread){.count = 0};
    for (size_t i = 0; i < s->count; i++) {
        if (exti__plan_edits(plan, s->segments[i].at, s->own[i]))
            continue;
        for (size_t k = 0; k < s->holes.count; k++)
            if (is_within(&s->holes.part[k], &s->segments[i]))
                exti__parts_add(left_out, &s->holes.part[k]);
    }
    if (!left_out->count)
        return;
    for (size_t i = 0; i < plan->cut_count; i++) {
        const struct exti_cut *cut = &plan->cuts[i];

        if (cut->left.n)
            exti__parts_add(left_out, &cut->left);
        if (cut->left.n && !cut->loaded)
            exti__parts_add(unloaded, &cut->left);
    }
}

static bool same_part(const struct exti_range *a, const struct exti_range *b)
{
    return a->at == b->at && a->n == b->n;
}

void exti__parts_drop(struct exti_unread *parts, const struct exti_unread *gone)
{
    size_t kept = 0;

    for (size_t i = 0, k = 0; i < parts->count; i++) {
        while (k < gone->count && gone->part[k].at < parts->part[i].at)
            k++;
        if (k == gone->count || !same_part(&parts->part[i], &gone->part[k]))
            parts->part[kept++] = parts->part[i];
    }
    parts->count = kept;
}

bool exti__parts_same(const struct exti_unread *a, const struct exti_unread *b)
{
    if (a->count != b->count)
        return false;
    for (size_t i = 0; i < a->count; i++)
        if (!same_part(&a->part[i], &b->part[i]))
            return false;
    return true;
}

uint64_t exti__parts_size(const struct exti_unread *parts)
{
    uint64_t size = 0;

    for (size_t i = 0; i < parts->count; i++)
        size += parts->part[i].n;
    return size;
}

struct exti_range exti__parts_between(const struct exti_unread *parts, size_t i, size_t end)
{
    const size_t at = i ? parts->part[i - 1].at + parts->part[i - 1].n : 0;

    return (struct exti_range){at, (i < parts->count ? parts->part[i].at : end) - at};
}

bool exti__parts_have(const struct exti_unread *parts, size_t at, size_t *end)
{
    for (size_t i = 0; i < parts->count; i++) {
        const size_t from = parts->part[i].at, to = from + parts->part[i].n;

        if (at >= to)
            continue;
        if (at < from && from < *end)
            *end = from;
        if (at >= from && to < *end)
            *end = to;
        return at >= from;
    }
    return false;
}
