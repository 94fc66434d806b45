/* The header and the load commands: edited ones are as requested, all others as in the original. */
#include "macho/check/macho_check_edit.h"

#include <inttypes.h>
#include <string.h>

#include "macho/check/macho_check_report.h"
#include "macho/read/macho_withheld.h"
#include "macho/read/macho_word.h"

/* ---- header ---------------------------------------------------------------------------------- */

int exti__macho_step_header(struct macho_check *c, struct exti_error *err)
{
    const uint32_t was = c->before.flags, now = c->after.flags;
    const uint32_t may_clear =
        !c->opts || c->opts->flags & EXTI_RW_CLEAR_UNIQUE ? MH_WEAK_DEFINES | MH_BINDS_TO_WEAK : 0;

    (void)err;
    if (memcmp(c->before.file.p, c->after.file.p, 16) != 0)
        exti__macho_finding(c, 0, "header: its first 16 bytes differ from the original's");
    if (exti__macho_u32(c->before.file.p + 28) != exti__macho_u32(c->after.file.p + 28))
        exti__macho_finding(c, 28, "header: the reserved word differs from the original's");
    if (now & ~was || (was & ~now) & ~may_clear)
        exti__macho_finding(c, 24, "header: flags 0x%x, not 0x%x", now, was);
    if (c->opts && c->opts->flags & EXTI_RW_CLEAR_UNIQUE && now & MH_WEAK_DEFINES)
        exti__macho_finding(c, 24,
                            "header: MH_WEAK_DEFINES is still set, so other images would bind to "
                            "this one's definitions");
    return 0;
}

/* ---- commands -------------------------------------------------------------------------------- */

static bool has_own_check(uint32_t cmd)
{
    switch (cmd) {
    case LC_ID_DYLIB:
    case LC_LOAD_DYLIB:
    case LC_LOAD_WEAK_DYLIB:
    case LC_REEXPORT_DYLIB:
    case LC_LOAD_UPWARD_DYLIB:
    case LC_LAZY_LOAD_DYLIB:
    case LC_RPATH:
    case LC_CODE_SIGNATURE:
        return true;
    default:
        return false;
    }
}

/* Commands that a copy may drop to make room; dyld reads none of them. */
static bool is_optional(const struct macho_command *cmd)
{
    switch (cmd->cmd) {
    case LC_SOURCE_VERSION:
    case LC_FUNCTION_STARTS:
    case LC_DATA_IN_CODE:
    case LC_DYLIB_CODE_SIGN_DRS:
    case LC_SEGMENT_SPLIT_INFO:
        return true;
    default:
        return false;
    }
}

static void report_field(struct macho_check *c, const struct macho_command *now, const char *what,
                         uint64_t is, uint64_t want)
{
    exti__macho_finding(c, now->at, "command 0x%x: %s is 0x%" PRIx64 ", not 0x%" PRIx64, now->cmd,
                        what, is, want);
}

static uint64_t moved_offset(const struct macho_check *c, uint32_t offset)
{
    return offset ? offset + c->shift : 0;
}

static void compare_section_64(struct macho_check *c, const struct macho_command *now,
                               const uint8_t *b, const uint8_t *a)
{
    const uint64_t addr = exti__macho_u64(b + 32) + c->shift;
    const uint32_t was = exti__macho_u32(b + 64);
    const uint32_t flags = c->withheld ? exti__macho_withheld_flags(was) : was;

    if (memcmp(a, b, 32) != 0 || memcmp(a + 40, b + 40, 8) != 0 ||
        memcmp(a + 52, b + 52, 12) != 0 || memcmp(a + 68, b + 68, SECTION_64_SIZE - 68) != 0)
        exti__macho_finding(c, now->at, "section %.16s: differs from the original's",
                            (const char *)b);
    if (exti__macho_u64(a + 32) != addr)
        report_field(c, now, "a section's address", exti__macho_u64(a + 32), addr);
    if (exti__macho_u32(a + 64) != flags)
        exti__macho_finding(c, now->at, "section %.16s: flags 0x%x, not 0x%x", (const char *)b,
                            exti__macho_u32(a + 64), flags);
    if (exti__macho_u32(a + 48) != moved_offset(c, exti__macho_u32(b + 48)))
        report_field(c, now, "a section's file offset", exti__macho_u32(a + 48),
                     moved_offset(c, exti__macho_u32(b + 48)));
}

/* With a page shift, __TEXT grows at its front and the others move.  __LINKEDIT's sizes are
 * checked elsewhere. */
static void compare_segment_64(struct macho_check *c, const struct macho_command *was,
                               const struct macho_command *now)
{
    const uint8_t *b = was->s.p, *a = now->s.p;
    const bool is_text = was->at == c->before.commands[c->before.text->command].at,
               is_linkedit = was->at == c->before.commands[c->before.linkedit->command].at;
    const uint64_t grown = is_text ? c->shift : 0, moved = is_text ? 0 : c->shift;
    const uint64_t vmsize = exti__macho_u64(b + 32) + grown,
                   filesize = exti__macho_u64(b + 48) + grown;
    const uint64_t fileoff = exti__macho_u64(b + 40);

    if (was->s.n != now->s.n || memcmp(a, b, 24) != 0 ||
        memcmp(a + 56, b + 56, SEGMENT_COMMAND_64_SIZE - 56) != 0) {
        exti__macho_finding(c, now->at, "segment %.16s: differs from the original's",
                            (const char *)b + 8);
        return;
    }
    if (exti__macho_u64(a + 24) != exti__macho_u64(b + 24) + moved)
        report_field(c, now, "vmaddr", exti__macho_u64(a + 24), exti__macho_u64(b + 24) + moved);
    if (exti__macho_u64(a + 40) != fileoff + (exti__macho_u64(b + 48) ? moved : 0) &&
        exti__macho_u64(a + 40) != fileoff + moved)
        report_field(c, now, "fileoff", exti__macho_u64(a + 40), fileoff + moved);
    if (!is_linkedit && exti__macho_u64(a + 32) != vmsize)
        report_field(c, now, "vmsize", exti__macho_u64(a + 32), vmsize);
    if (!is_linkedit && exti__macho_u64(a + 48) != filesize)
        report_field(c, now, "filesize", exti__macho_u64(a + 48), filesize);
    for (size_t at = SEGMENT_COMMAND_64_SIZE; at + SECTION_64_SIZE <= was->s.n;
         at += SECTION_64_SIZE)
        compare_section_64(c, now, b + at, a + at);
}

/* Rules check the fields that locate pieces; other steps check the pieces. */
static bool is_piece_field(const struct macho_file *f, size_t command, size_t at)
{
    for (int i = 0; i < MACHO_PIECES; i++) {
        const struct macho_piece *p = &f->pieces[i];

        if (p->present && p->command == command &&
            ((at >= p->off_at && at < (size_t)p->off_at + 4) ||
             (at >= p->size_at && at < (size_t)p->size_at + 4)))
            return true;
    }
    return false;
}

/* How much a command's word grows: with a page shift, addresses and file offsets do. */
static uint64_t moved_word(const struct macho_check *c, const struct macho_command *was, size_t at)
{
    const bool is_encrypted = was->cmd == LC_ENCRYPTION_INFO || was->cmd == LC_ENCRYPTION_INFO_64;

    const bool is_routine = exti__macho_withheld_command(was->cmd) == EXTI_LC_ROUTINES_64;

    return at == 8 && (is_routine || is_encrypted) ? c->shift : 0;
}

static void compare_command(struct macho_check *c, size_t i, size_t j)
{
    const struct macho_command *was = &c->before.commands[i], *now = &c->after.commands[j];

    if (was->cmd == LC_SEGMENT_64) {
        compare_segment_64(c, was, now);
        return;
    }
    if (was->cmd == LC_BUILD_VERSION && now->s.n == 24 && was->s.n > 24) {
        /* The copy has dropped the list of tools. */
        if (memcmp(was->s.p + 8, now->s.p + 8, 12) != 0 || exti__macho_u32(now->s.p + 20))
            exti__macho_finding(c, now->at, "LC_BUILD_VERSION: differs from the original's");
        return;
    }
    if (was->s.n != now->s.n) {
        report_field(c, now, "cmdsize", now->s.n, was->s.n);
        return;
    }
    for (size_t at = 8; at + 4 <= was->s.n; at += 4) {
        const uint32_t want = (uint32_t)(exti__macho_u32(was->s.p + at) + moved_word(c, was, at));

        if (exti__macho_u32(now->s.p + at) == want || is_piece_field(&c->before, i, at))
            continue;
        exti__macho_finding(c, now->at + at, "command 0x%x: 0x%x at byte %zu, not 0x%x", now->cmd,
                            exti__macho_u32(now->s.p + at), at, want);
        return;
    }
}

static size_t skip_own(const struct macho_file *f, size_t i)
{
    while (i < f->command_count && has_own_check(f->commands[i].cmd))
        i++;
    return i;
}

/* The number that the copy must have for a command that it keeps. */
static uint32_t kept_command(const struct macho_check *c, const struct macho_command *was)
{
    return c->withheld ? exti__macho_withheld_command(was->cmd) : was->cmd;
}

/* Commands keep their order.  The copy adds none here and drops only optional ones. */
int exti__macho_step_commands(struct macho_check *c, struct exti_error *err)
{
    const struct macho_file *b = &c->before, *a = &c->after;
    size_t i = skip_own(b, 0), j = skip_own(a, 0);

    (void)err;
    while (i < b->command_count && !c->judge.stop) {
        if (j < a->command_count && a->commands[j].cmd == kept_command(c, &b->commands[i])) {
            compare_command(c, i, j);
            j = skip_own(a, j + 1);
        } else if (!is_optional(&b->commands[i])) {
            exti__macho_finding(c, EXTI_NO_OFFSET, "command 0x%x of the original is missing",
                                b->commands[i].cmd);
        }
        i = skip_own(b, i + 1);
    }
    if (j < a->command_count)
        exti__macho_finding(c, a->commands[j].at,
                            "command 0x%x is not in the original at this place",
                            a->commands[j].cmd);
    return 0;
}

/* ---- id, libraries, search paths ------------------------------------------------------------- */

/* Compares dylib commands except for kind and name. */
static bool same_dylib_command(const struct macho_command *was, const struct macho_command *now)
{
    const bool is_use = exti__macho_u32(was->s.p + 12) == DYLIB_USE_MARKER &&
                        exti__macho_u32(was->s.p + 8) == DYLIB_USE_COMMAND_SIZE;

    return memcmp(was->s.p + 12, now->s.p + 12, 12) == 0 &&
           (!is_use || (exti__macho_u32(now->s.p + 8) == DYLIB_USE_COMMAND_SIZE &&
                        memcmp(was->s.p + 24, now->s.p + 24, 4) == 0));
}

static const struct macho_command *id_command(const struct macho_file *f)
{
    for (size_t i = 0; i < f->command_count; i++)
        if (f->commands[i].cmd == LC_ID_DYLIB)
            return &f->commands[i];
    return NULL;
}

int exti__macho_step_id(struct macho_check *c, struct exti_error *err)
{
    const struct macho_command *was = id_command(&c->before), *now = id_command(&c->after);
    const char *id = c->after.id;

    (void)err;
    if (!was != !now) {
        exti__macho_finding(c, EXTI_NO_OFFSET, "LC_ID_DYLIB: %s", now ? "new" : "lost");
        return 0;
    }
    if (c->opts && c->expect.id && (!id || strcmp(id, c->expect.id) != 0))
        exti__macho_finding(c, now ? now->at : EXTI_NO_OFFSET, "id: %s, not %s", id ? id : "none",
                            c->expect.id);
    if (now && !same_dylib_command(was, now))
        exti__macho_finding(c, now->at,
                            "LC_ID_DYLIB: more than its name differs from the original's");
    return 0;
}

static const struct macho_command *dylib_command(const struct macho_file *f, size_t i)
{
    return &f->commands[f->dylibs[i].command];
}

static void check_kind(struct macho_check *c, size_t i, size_t from, uint32_t cmd)
{
    const struct macho_command *now = dylib_command(&c->after, i);
    const char *name = c->after.dylibs[i].name;

    if (now->cmd != cmd)
        exti__macho_finding(c, now->at, "needed library %s: command 0x%x, not 0x%x", name, now->cmd,
                            cmd);
    if (from != MACHO_NO_DYLIB && !same_dylib_command(dylib_command(&c->before, from), now))
        exti__macho_finding(
            c, now->at, "needed library %s: its versions differ from those of %s in the original",
            name, c->before.dylibs[from].name);
}

static size_t find_dylib(const struct macho_file *f, const char *name)
{
    size_t i = 0;

    while (i < f->dylib_count && strcmp(f->dylibs[i].name, name) != 0)
        i++;
    return i;
}

/* ld64.lld writes two commands for a re-exported library: one loads it, one re-exports it.  Of
 * the original's libraries with the name of `from`, this is the one with the same command and
 * versions as the copy's library `i`, or else with the same command. */
static size_t named_alike(const struct macho_check *c, size_t from, size_t i)
{
    const struct macho_command *now = dylib_command(&c->after, i);
    size_t found = from;

    for (size_t j = 0; j < c->before.dylib_count; j++) {
        const struct macho_command *was = dylib_command(&c->before, j);

        if (was->cmd != now->cmd ||
            strcmp(c->before.dylibs[j].name, c->before.dylibs[from].name) != 0)
            continue;
        if (same_dylib_command(was, now))
            return j;
        found = j;
    }
    return found;
}

/* Whether the copy lacks the name of a library that the original needs by a command `cmd`.  Two
 * libraries that get the same name are merged into one, which then has the stronger command. */
static bool has_lost_command(const struct macho_check *c, uint32_t cmd)
{
    const struct macho_file *b = &c->before;

    for (size_t j = 0; j < b->dylib_count; j++)
        if (dylib_command(b, j)->cmd == cmd &&
            find_dylib(&c->after, b->dylibs[j].name) == c->after.dylib_count)
            return true;
    return false;
}

/* Whether the copy lacks the name of a library that the original needs in these versions. */
static bool has_lost_versions(const struct macho_check *c, const struct macho_command *now)
{
    const struct macho_file *b = &c->before;

    for (size_t j = 0; j < b->dylib_count; j++)
        if (find_dylib(&c->after, b->dylibs[j].name) == c->after.dylib_count &&
            same_dylib_command(dylib_command(b, j), now))
            return true;
    return false;
}

/* Without a request: whether the copy's library `i`, whose name is new, can be a renamed library
 * of the original, an added one, or two in one: then it has the versions of one and the command of
 * the other.  An added library has no versions and is loaded by LC_LOAD_DYLIB. */
static bool may_be_edited(const struct macho_check *c, size_t i)
{
    const struct macho_file *a = &c->after;
    const struct macho_command *now = dylib_command(a, i);
    bool versions = !a->dylibs[i].current_version && !a->dylibs[i].compatibility_version;

    return (versions || has_lost_versions(c, now)) &&
           (now->cmd == LC_LOAD_DYLIB || has_lost_command(c, now->cmd));
}

/* Without a request: whether the copy's library `i` can be the original's library `from` and a
 * renamed one in one, whose command is the stronger. */
static bool may_be_merged(const struct macho_check *c, size_t i, size_t from)
{
    const struct macho_command *was = dylib_command(&c->before, from),
                               *now = dylib_command(&c->after, i);

    return now->cmd != was->cmd && has_lost_command(c, now->cmd) &&
           (same_dylib_command(was, now) || has_lost_versions(c, now));
}

/* Without a request: libraries may be renamed, but those that kept their names must be needed as
 * before. */
static int check_without_request(struct macho_check *c)
{
    for (size_t i = 0; i < c->after.dylib_count && !c->same_dylibs; i++) {
        const char *name = c->after.dylibs[i].name;
        size_t from = find_dylib(&c->before, name);

        if (from < c->before.dylib_count) {
            from = named_alike(c, from, i);
            if (!may_be_merged(c, i, from))
                check_kind(c, i, from, dylib_command(&c->before, from)->cmd);
        } else if (!may_be_edited(c, i)) {
            exti__macho_finding(
                c, dylib_command(&c->after, i)->at,
                "needed library %s: corresponds to no library that the original needs", name);
        }
    }
    for (size_t i = 0; i < c->before.dylib_count && c->same_dylibs; i++)
        check_kind(c, i, i, dylib_command(&c->before, i)->cmd);
    return 0;
}

int exti__macho_step_needed(struct macho_check *c, struct exti_error *err)
{
    const struct macho_file *a = &c->after;
    const struct macho_expect *e = &c->expect;

    (void)err;
    if (!c->opts)
        return check_without_request(c);
    for (size_t i = 0; i < a->dylib_count || i < e->needed_count; i++) {
        const char *is = i < a->dylib_count ? a->dylibs[i].name : "none",
                   *want = i < e->needed_count ? e->needed[i].name : "none";

        if (strcmp(is, want) != 0) {
            exti__macho_finding(c, EXTI_NO_OFFSET, "needed library %zu: %s, not %s", i + 1, is,
                                want);
            return 0;
        }
        check_kind(c, i, e->needed[i].from, e->needed[i].cmd);
    }
    return 0;
}

static bool is_second(const struct macho_file *f, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (strcmp(f->rpaths[k], f->rpaths[i]) == 0)
            return true;
    return false;
}

int exti__macho_step_rpaths(struct macho_check *c, struct exti_error *err)
{
    const struct macho_file *a = &c->after;
    const struct macho_expect *e = &c->expect;
    size_t n = 0;

    (void)err;
    if (!c->opts)
        return 0;
    for (size_t i = 0; i < a->rpath_count; i++) {
        const char *want = n < e->rpath_count ? e->rpaths[n] : "none";

        /* The original's duplicates may stay. */
        if (is_second(a, i) && a->rpath_count <= c->before.rpath_count)
            continue;
        if (strcmp(a->rpaths[i], want) != 0) {
            exti__macho_finding(c, EXTI_NO_OFFSET, "search path %zu: %s, not %s", i + 1,
                                a->rpaths[i], want);
            return 0;
        }
        n++;
    }
    if (n < e->rpath_count)
        exti__macho_finding(c, EXTI_NO_OFFSET, "search path %s is missing", e->rpaths[n]);
    return 0;
}
