/* glibc makes the block when the process starts, as large as an environment variable says.  A
 * running process can only be told which value would have sufficed. */
#include "loader/load/static_tls.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "loader/image/hazards.h"
#include "loader/process/dl.h"
#include "loader/track/context.h"

#define TUNABLE "glibc.rtld.optional_static_tls"
#define DEFAULT_ROOM 512
#define CONTEXTS_MIN 64 /* contexts to make room for, at least */

/* The size that this process's block was made with. */
static uint64_t room_now(void)
{
    const char *all = getenv("GLIBC_TUNABLES"), *at = all ? strstr(all, TUNABLE "=") : NULL;

    return at ? strtoull(at + sizeof TUNABLE, NULL, 0) : DEFAULT_ROOM;
}

/* More than are open now, as others may follow: a value that is too large costs each thread a few
 * unused bytes. */
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

/* An error keeps the tail of a path that is too long for it. */
static const char *whole_path(const char *path, const struct exti_error *err)
{
    const size_t n = strlen(path), kept = strlen(err->file);

    return n > kept && strcmp(path + (n - kept), err->file) == 0 ? path : err->file;
}

void exti__static_tls_advise(const char *path, struct exti_error *err)
{
    char file[sizeof err->file];
    struct exti_image *im = NULL;
    uint64_t bytes = 0, align = 0;
    bool too_aligned = false;

    if (err->code != EXTI_E_LOAD || strcmp(err->message, EXTI_DL_STATIC_TLS_FULL) != 0)
        return;
    if (!exti_inspect(whole_path(path, err), &im, NULL)) {
        bytes = exti__static_tls(im);
        align = exti__static_tls_align(im);
        too_aligned = bytes > 0 && im->info.tls_align > align;
    }
    exti_image_free(im);
    memcpy(file, err->file, sizeof file);
    if (too_aligned) {
        exti__fail(err, EXTI_E_LOAD, EXTI_NO_OFFSET,
                   "%s, which holds nothing aligned to more than %" PRIu64
                   " bytes; link the program itself with this library",
                   EXTI_DL_STATIC_TLS_FULL, align);
    } else {
        const size_t contexts = contexts_to_come();

        exti__fail(err, EXTI_E_LOAD, EXTI_NO_OFFSET,
                   "%s; a process started with GLIBC_TUNABLES=" TUNABLE "=%" PRIu64
                   " has room for it in %zu contexts",
                   EXTI_DL_STATIC_TLS_FULL, room_for(bytes, contexts), contexts);
    }
    exti__error_file(err, file);
}
