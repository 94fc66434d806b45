#include "loader/store/store_policy.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "loader/resolve/quirks.h"
#include "loader/resolve/search.h"
#include "loader/store/store_graph.h"

int exti__store_check_rules(const struct exti_store_opts *o, struct exti_error *err)
{
    for (size_t i = 0; i < o->rule_count; i++) {
        int rc = exti__manifest_check_text(o->rules[i].glob, "rule", NULL);

        if (rc == EXTI_E_UNSUPPORTED)
            return exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET,
                              "library name %zu to share or isolate is not UTF-8, so the "
                              "manifest cannot hold it",
                              i + 1);
        if (rc)
            return exti__fail_nomem(err);
    }
    return 0;
}

static bool same_rules(const struct exti_manifest_policy *p, const struct exti_store_opts *o)
{
    if (p->rule_count != o->rule_count)
        return false;
    for (size_t i = 0; i < o->rule_count; i++)
        if (strcmp(p->rules[i].glob, o->rules[i].glob) != 0 ||
            p->rules[i].share != (o->rules[i].share != 0))
            return false;
    return true;
}

int exti__store_check_policy(const struct exti_manifest_policy *p, const struct exti_store_opts *o,
                             struct exti_error *err)
{
    if (o->closure != EXTI_CLOSURE_DEFAULT && o->closure != p->closure)
        return exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET,
                          "was made with --closure=%s; omit --closure or use another directory",
                          exti__closure_name(p->closure));
    if (o->rule_count && !same_rules(p, o))
        return exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET,
                          "was made with other --share and --isolate options; omit these or use "
                          "another directory");
    return 0;
}

static int copy_rules(struct exti_manifest_policy *p, const struct exti_store_opts *o,
                      struct exti_error *err)
{
    p->rules = exti__calloc(o->rule_count + 1, sizeof *p->rules);
    if (!p->rules)
        return exti__fail_nomem(err);
    for (; p->rule_count < o->rule_count; p->rule_count++) {
        const struct exti_rule *r = &o->rules[p->rule_count];
        char *glob = exti__strdup(r->glob);

        if (!glob)
            return exti__fail_nomem(err);
        p->rules[p->rule_count] = (struct exti_rule){glob, r->share != 0};
    }
    return 0;
}

int exti__store_choose_policy(struct exti_manifest *m, const struct exti_image *api,
                              const struct exti_store_opts *o, struct exti_error *err)
{
    const bool given = o->closure != EXTI_CLOSURE_DEFAULT || o->rule_count;
    const bool followed = exti__search_ops(api->format);

    if (m->policy.closure != EXTI_CLOSURE_DEFAULT)
        return exti__store_check_policy(&m->policy, o, err);
    if (!followed && given && o->closure != EXTI_CLOSURE_NONE)
        return exti__fail(err, EXTI_E_UNSUPPORTED, EXTI_NO_OFFSET,
                          "is %s, and this system cannot follow the needs of such files: all "
                          "libraries are shared; omit --closure, --share and --isolate",
                          api->info.format);
    m->policy.closure = !followed                            ? EXTI_CLOSURE_NONE
                        : o->closure == EXTI_CLOSURE_DEFAULT ? EXTI_CLOSURE_ALL
                                                             : o->closure;
    return copy_rules(&m->policy, o, err);
}

/* Folders of a search path may have any name, but the manifest holds UTF-8 only: escapes all
 * beyond ASCII. Writes at most 4 bytes for each of `text`, and no NUL; returns the end. */
static char *put_ascii(char *out, const char *text)
{
    for (; *text; text++) {
        const unsigned char c = (unsigned char)*text;

        if (c < 0x80)
            *out++ = *text;
        else
            out += snprintf(out, sizeof "\\xNN", "\\x%02x", c);
    }
    return out;
}

/* All that copies depend on besides their sources and the policy: where needs are looked up, and
 * quirks. */
static int search_key(const struct exti_store *s, char **out, struct exti_error *err)
{
    const bool all_shared = s->manifest.policy.closure == EXTI_CLOSURE_NONE;
    char *search = NULL, *quirks = NULL;
    int rc = all_shared ? 0 : exti__store_search_key(s->manifest.target.format, &search, err);

    if (!rc)
        rc = exti__quirks_key(s->quirks, &quirks, err);
    if (!rc) {
        const size_t n = strlen(quirks) + 16;

        *out = exti__alloc(4 * (search ? strlen(search) : 0) + n);
        if (*out)
            snprintf(put_ascii(*out, search ? search : ""), n, "%s%s", *quirks ? " quirks " : "",
                     quirks);
        else
            rc = exti__fail_nomem(err);
    }
    exti__free(search);
    exti__free(quirks);
    return rc;
}

int exti__store_is_same_search(const struct exti_store *s, bool *same, struct exti_error *err)
{
    char *key;
    int rc = search_key(s, &key, err);

    if (rc)
        return rc;
    *same = strcmp(s->manifest.search ? s->manifest.search : "", key) == 0;
    exti__free(key);
    return 0;
}

int exti__store_record_search(struct exti_store *s, struct exti_error *err)
{
    struct exti_manifest *m = &s->manifest;
    char *key;
    int rc = search_key(s, &key, err);

    if (rc)
        return rc;
    if (strcmp(m->search ? m->search : "", key) == 0) {
        exti__free(key);
        return 0;
    }
    m->resolution += m->api.source != NULL;
    exti__free(m->search);
    m->search = key;
    s->dirty = true;
    return 0;
}
