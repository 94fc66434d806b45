/* An addon of node in which contexts of CPython have handlers of signals: see node_signals.js, which
 * has node load it once for each step, and names the step in HOST_STEP. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <extisolate/python.h>

static const char handle[] =
    "import os, signal, time\n"
    "seen = set()\n"
    "every = {signal.SIGHUP, signal.SIGUSR2, signal.SIGWINCH, signal.SIGTERM, signal.SIGINT}\n"
    "for one in every:\n"
    "    signal.signal(one, lambda number, frame: seen.add(number))\n"
    "def expect(wanted):\n"
    "    end = time.monotonic() + 10\n"
    "    while seen != wanted and time.monotonic() < end:\n"
    "        time.sleep(0.01)\n"
    "    assert seen == wanted, (seen, wanted)\n"
    "    seen.clear()\n";

static const char expect_all[] = "expect(every)";

static const char send_own[] = "for one in every:\n"
                               "    os.kill(os.getpid(), one)\n"
                               "expect(every)\n";

static struct extipy_ctx *ctx;

static void end_if(int failed, const struct exti_error *err)
{
    if (!failed)
        return;
    fprintf(stderr, "%s: %s\n", err->file, err->message);
    fflush(NULL);
    _exit(1);
}

/* Python's main thread, which has its handlers run, is node's. */
static void open_context(uint32_t flags)
{
    const struct extipy_opts opts = {.size = sizeof opts, .on_caller = 1, .flags = flags};
    struct extipy_python *python;
    struct exti_error err;

    end_if(extipy_find(&python, NULL, &err), &err);
    end_if(extipy_open(&ctx, python, &opts, &err), &err);
    extipy_python_free(python);
    end_if(extipy_exec(ctx, handle, NULL, &err), &err);
}

static void close_context(void)
{
    struct extipy_closed closed = {.size = sizeof closed};
    struct exti_error err = {.message = "copies stay mapped"};

    end_if(extipy_close(ctx, NULL, NULL, &closed, &err), &err);
    end_if(closed.mapped != 0, &err);
}

static void take_step(const char *step)
{
    struct exti_error err = {.message = "no such step"};

    if (strcmp(step, "open") == 0)
        open_context(0);
    else if (strcmp(step, "open with node's signals") == 0)
        open_context(EXTI_CTX_PROCESS_SIGNALS);
    else if (strcmp(step, "expect all") == 0)
        end_if(extipy_exec(ctx, expect_all, NULL, &err), &err);
    else if (strcmp(step, "send own") == 0)
        end_if(extipy_exec(ctx, send_own, NULL, &err), &err);
    else if (strcmp(step, "close") == 0)
        close_context();
    else
        end_if(1, &err);
}

/* Node calls it whenever the library is opened; what it gives and gets is not needed. */
void *napi_register_module_v1(void *env, void *exports);
__attribute__((visibility("default"))) void *napi_register_module_v1(void *env, void *exports)
{
    const char *step = getenv("HOST_STEP");

    (void)env;
    (void)exports;
    take_step(step ? step : "");
    return NULL;
}
