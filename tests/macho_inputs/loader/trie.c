#include "tests/macho_inputs/loader/load.h"

#include <stdio.h>
#include <string.h>

static struct reader node(const struct macho *m, uint64_t offset)
{
    struct reader r = read_blob(m, m->trie);

    if (offset >= m->trie.size)
        die("%s: a node of the exports trie is at 0x%llx, past its end", m->path,
            (unsigned long long)offset);
    r.at += offset;
    return r;
}

static void read_terminal(struct reader *r, uint64_t size, struct export *out)
{
    uint64_t end = r->at + size;

    out->other = 0;
    out->import_name = "";
    out->address = 0;
    out->flags = read_uleb(r);
    if (out->flags & 8) {
        out->other = read_uleb(r);
        out->import_name = read_string(r);
    } else {
        out->address = read_uleb(r);
        if (out->flags & 0x10)
            out->other = read_uleb(r);
    }
    if (r->at != end)
        die("%s: an export's record has not the size that it says", r->m->path);
}

bool find_export(const struct macho *m, const char *name, struct export *out)
{
    const char *rest = name;
    struct reader r;

    if (!m->trie.size)
        return false;
    r = node(m, 0);
    for (;;) {
        uint64_t size = read_uleb(&r), children_at = r.at + size, next = 0;
        unsigned children;

        if (!*rest) {
            if (!size)
                return false;
            snprintf(out->name, sizeof out->name, "%s", name);
            read_terminal(&r, size, out);
            return true;
        }
        r.at = children_at;
        children = read8(&r);
        for (; children && !next; children--) {
            const char *edge = read_string(&r);
            uint64_t child = read_uleb(&r);

            if (strncmp(rest, edge, strlen(edge)) == 0) {
                next = child;
                rest += strlen(edge);
            }
        }
        if (!next)
            return false;
        r = node(m, next);
    }
}

static void walk(const struct macho *m, uint64_t offset, size_t length, struct export *e,
                 void (*each)(void *user, const struct export *e), void *user)
{
    struct reader r = node(m, offset);
    uint64_t size = read_uleb(&r), children_at = r.at + size;

    e->name[length] = 0;
    if (size) {
        read_terminal(&r, size, e);
        each(user, e);
    }
    r.at = children_at;
    for (unsigned children = read8(&r); children; children--) {
        const char *edge = read_string(&r);
        uint64_t child = read_uleb(&r);
        size_t n = strlen(edge);

        if (length + n >= sizeof e->name)
            die("%s: an export's name is too long, or its trie has a loop", m->path);
        memcpy(e->name + length, edge, n);
        walk(m, child, length + n, e, each, user);
    }
}

void each_export(const struct macho *m, void (*each)(void *user, const struct export *e),
                 void *user)
{
    struct export e = {.import_name = ""};

    if (m->trie.size)
        walk(m, 0, 0, &e, each, user);
}
