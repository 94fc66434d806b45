#define _GNU_SOURCE /* pipe2, accept4 */
#include "loader/interpose/descriptor_calls.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "loader/track/address_map.h"
#include "loader/track/descriptors.h"
#include "loader/track/redirects.h"

#define CALL ((uintptr_t)__builtin_return_address(0))

/* One context shares what it has with nobody: then NULL. */
static const struct exti_ctx *begin(uintptr_t caller, sigset_t *signals)
{
    const struct exti_ctx *ctx = exti__ctx_count() > 1 ? exti__address_map_ctx(caller) : NULL;

    if (ctx)
        exti__descriptors_begin(signals);
    return ctx;
}

static void end(const struct exti_ctx *ctx, const int *fds, size_t n, const sigset_t *signals)
{
    const int error = errno;

    if (!ctx)
        return;
    for (size_t i = 0; i < n; i++)
        exti__descriptor_made(ctx, fds[i]);
    exti__descriptors_end(signals);
    errno = error;
}

static int interposed_pipe(int fds[2])
{
    sigset_t signals;
    const struct exti_ctx *ctx = begin(CALL, &signals);
    const int rc = pipe(fds);

    end(ctx, fds, rc ? 0 : 2, &signals);
    return rc;
}

static int interposed_pipe2(int fds[2], int flags)
{
    sigset_t signals;
    const struct exti_ctx *ctx = begin(CALL, &signals);
    const int rc = pipe2(fds, flags);

    end(ctx, fds, rc ? 0 : 2, &signals);
    return rc;
}

static int interposed_socketpair(int domain, int type, int protocol, int fds[2])
{
    sigset_t signals;
    const struct exti_ctx *ctx = begin(CALL, &signals);
    const int rc = socketpair(domain, type, protocol, fds);

    end(ctx, fds, rc ? 0 : 2, &signals);
    return rc;
}

static int interposed_socket(int domain, int type, int protocol)
{
    sigset_t signals;
    const struct exti_ctx *ctx = begin(CALL, &signals);
    const int fd = socket(domain, type, protocol);

    end(ctx, &fd, fd >= 0, &signals);
    return fd;
}

/* This may wait for long, and a fork must not wait for it: one that comes right after it gives its
 * child the descriptor. */
static int accepted(uintptr_t caller, int fd)
{
    sigset_t signals;

    if (fd >= 0)
        end(begin(caller, &signals), &fd, 1, &signals);
    return fd;
}

static int interposed_accept(int from, struct sockaddr *address, socklen_t *length)
{
    return accepted(CALL, accept(from, address, length));
}

static int interposed_accept4(int from, struct sockaddr *address, socklen_t *length, int flags)
{
    return accepted(CALL, accept4(from, address, length, flags));
}

void *exti__descriptor_call(const struct exti_ctx *ctx, const char *symbol)
{
    const struct exti_redirect calls[] = {
        {"pipe", EXTI_ADDRESS(interposed_pipe)},
        {"__pipe", EXTI_ADDRESS(interposed_pipe)},
        {"pipe2", EXTI_ADDRESS(interposed_pipe2)},
        {"socketpair", EXTI_ADDRESS(interposed_socketpair)},
        {"socket", EXTI_ADDRESS(interposed_socket)},
        {"accept", EXTI_ADDRESS(interposed_accept)},
        {"accept4", EXTI_ADDRESS(interposed_accept4)},
    };

    if (ctx->flags & EXTI_CTX_PROCESS_SIGNALS)
        return NULL;
    return exti__redirect_find(calls, sizeof calls / sizeof *calls, symbol);
}
