/* The block is made as the process starts, and an environment variable of glibc's says how large: so all
 * that can be done is to say which value will do the next time. */
#include "loader/process/static_tls.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/os/fs.h"
#include "loader/image/hazards.h"
#include "loader/track/module.h"

#define TUNABLE "glibc.rtld.optional_static_tls"
#define DEFAULT_ROOM 512
#define CONTEXTS_MIN 64 /* contexts to make room for, at least */

/* What the block was made with. */
static uint64_t room_now(void)
{
    const char *all = getenv("GLIBC_TUNABLES"), *at = all ? strstr(all, TUNABLE "=") : NULL;

    return at ? strtoull(at + sizeof TUNABLE, NULL, 0) : DEFAULT_ROOM;
}

/* More than the contexts there are, as others may follow: a value that is too large costs each thread a
 * few unused bytes. */
static size_t contexts_to_come(void)
{
    size_t n = exti__ctx_count();

    return n < CONTEXTS_MIN / 2 ? CONTEXTS_MIN : n * 2;
}

static uint64_t room_for(uint64_t bytes, size_t contexts)
{
    uint64_t want = room_now() + bytes * contexts, room = DEFAULT_ROOM;

    while (room < want && room < UINT64_MAX / 2)
        room *= 2;
    return room;
}

/* The file that the message is about, which may be one that `path` drags in, to be freed; NULL when
 * memory is out. */
static char *file_at_fault(const char *path, const char *text, const char *words)
{
    size_t n = (size_t)(words - text);
    char *file;

    if (n < 2)
        return exti__strdup(path);
    file = exti__strdup(text);
    if (file)
        file[n - 2] = 0;
    return file;
}

int exti__static_tls_full(const char *path, const char *text, struct exti_error *err)
{
    static const char words[] = "cannot allocate memory in static TLS block";
    const char *at = strstr(text, words);
    size_t contexts = contexts_to_come();
    struct exti_image *im = NULL;
    uint64_t bytes = 0;
    bool too_aligned = false;
    char *file;
    int rc;

    if (!at)
        return 0;
    file = file_at_fault(path, text, at);
    if (file && !exti_inspect(file, &im, NULL)) {
        bytes = exti__static_tls(im);
        too_aligned = bytes > 0 && im->info.tls_align > EXTI_STATIC_TLS_ALIGN;
    }
    exti_image_free(im);
    if (too_aligned)
        rc = exti__fail(
            err, EXTI_E_LOAD, EXTI_NO_OFFSET,
            "%s, where nothing fits that is aligned to more than %d bytes; only a program "
            "that needs the library itself can have it",
            words, EXTI_STATIC_TLS_ALIGN);
    else
        rc = exti__fail(err, EXTI_E_LOAD, EXTI_NO_OFFSET,
                        "%s; a process that is started with GLIBC_TUNABLES=" TUNABLE "=%" PRIu64
                        " has room for it in %zu contexts",
                        words, room_for(bytes, contexts), contexts);
    exti__error_file(err, file ? file : path);
    exti__free(file);
    return rc;
}
