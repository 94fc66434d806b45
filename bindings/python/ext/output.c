#include "bindings/python/ext/python.h"

#include "bindings/python/ext/output.h"

#include "bindings/python/ext/calls.h"
#include "bindings/python/ext/entries.h"

/* Begins to call a function with so many arguments. */
static void begin_tell(struct pkg_call *call, const char *function, size_t args)
{
    *call = (struct pkg_call){.target = function, .unread = 1};
    pkg_message_init(&call->given);
    pkg_message_init(&call->answer);
    pkg_message_add_object(&call->given, PKG_TUPLE, &args, sizeof args); /* there is room */
}

static int add_number(struct pkg_call *call, uint64_t number)
{
    long long same = (long long)number;

    return pkg_message_add_object(&call->given, PKG_INT, &same, sizeof same);
}

/* The owner may have ended, or the process does. */
static void tell(uint64_t owner, struct pkg_call *call)
{
    struct exti_error err;

    pkg_calls_send(owner, call, &err);
    pkg_message_clear(&call->answer);
}

static void give_line(void *user, enum extipy_stream stream, const char *text, size_t length)
{
    const struct pkg_entry *e = user;
    struct pkg_call call;

    begin_tell(&call, "extisolate._output:deliver", 3);
    if (add_number(&call, e->number) == 0 && add_number(&call, stream) == 0 &&
        pkg_message_add_text(&call.given, PKG_BYTES, text, length) == 0)
        tell(e->owner, &call);
    pkg_message_clear(&call.given);
}

int pkg_output_open(uint64_t *id, const struct pkg_opening *how, struct exti_error *err)
{
    return pkg_core_open(id, how, give_line, err);
}

static void give_end(uint64_t owner, uint64_t id)
{
    struct pkg_call call;

    begin_tell(&call, "extisolate._output:end", 1);
    if (add_number(&call, id) == 0)
        tell(owner, &call);
    pkg_message_clear(&call.given);
}

int pkg_output_close(uint64_t id, int wait, struct pkg_report *report, struct extipy_closed *out,
                     struct exti_error *err)
{
    struct pkg_entry *e;
    uint64_t owner = 0;
    unsigned streams = 0;
    int rc;

    if (pkg_entries_acquire(&e, id, NULL) == 0) {
        owner = e->owner;
        streams = e->streams;
        pkg_entries_release(e);
    }
    rc = pkg_core_close(id, wait, report, out, err);
    if (rc == 0 && streams)
        give_end(owner, id);
    return rc;
}
