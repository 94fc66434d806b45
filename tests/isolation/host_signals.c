/* A library by which node or, with -DIN_JAVA, a JVM has contexts of CPython that handle signals: see
 * node_signals.js, which has it loaded once for each step, named by HOST_STEP, and JavaSignals.java. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <extisolate/python.h>

static const char handle[] =
    "import faulthandler, os, signal, time\n"
    "faulthandler.enable()\n"
    "seen = set()\n"
    "every = {signal.SIGHUP, signal.SIGUSR2, signal.SIGWINCH, signal.SIGINT}\n"
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

/* Python's main thread, which has its handlers run, is the caller. */
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
    else if (strcmp(step, "open with the host's signals") == 0)
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

#ifdef IN_JAVA
#include <jni.h>

JNIEXPORT void JNICALL Java_JavaSignals_step(JNIEnv *env, jclass class, jstring name);
JNIEXPORT void JNICALL Java_JavaSignals_step(JNIEnv *env, jclass class, jstring name)
{
    const char *step = (*env)->GetStringUTFChars(env, name, NULL);

    (void)class;
    take_step(step ? step : "");
    (*env)->ReleaseStringUTFChars(env, name, step);
}
#else
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
#endif
