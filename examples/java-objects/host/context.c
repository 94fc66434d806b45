/* The native methods of PythonContext.java, which sees to it that no thread is in one of them after
 * the context has been closed. */
#include <stdio.h>
#include <stdlib.h>

#include "host.h"

#define NATIVE(type, name) JNIEXPORT type JNICALL Java_javaobjects_PythonContext_##name

static struct host *host_at(jlong handle)
{
    return (struct host *)(intptr_t)handle;
}

static void throw_error(JNIEnv *env, const struct exti_error *err)
{
    char text[1100];

    snprintf(text, sizeof text, "%s%s%s", err->file, *err->file ? ": " : "", err->message);
    java_throw(env, java.illegal_state, text);
}

/* ---- opening --------------------------------------------------------------------------------- */

static int add_path(struct extipy_ctx *ctx, const char *folder, size_t length,
                    struct exti_error *err)
{
    struct extipy_call call = {.size = sizeof call, .function = "sys:path.insert"};
    struct extipy_values *values;
    int rc = extipy_values_new(&values, err);

    if (rc < 0)
        return rc;
    call.values = values;
    call.args =
        extipy_container(values, EXTIPY_TUPLE,
                         (size_t[]){extipy_int(values, 0), extipy_str(values, folder, length)}, 2);
    rc = extipy_call(ctx, &call, NULL, NULL, err);
    extipy_values_free(values);
    return rc;
}

/* The module is copied into the context as any extension is; each copy gets the host half of its
 * context, and gives its own one. */
static int begin_module(struct host *host, struct exti_error *err)
{
    struct extipy_call call = {.size = sizeof call, .function = "javaobjects:begin"};
    struct extipy_value value = {.size = sizeof value};
    struct extipy_values *values, *result = NULL;
    int rc = extipy_values_new(&values, err);

    if (rc < 0)
        return rc;
    call.values = values;
    call.args = extipy_container(values, EXTIPY_TUPLE,
                                 (size_t[]){extipy_int(values, (intptr_t)&host->java)}, 1);
    rc = extipy_call(host->ctx, &call, &result, NULL, err);
    if (rc == 0 && (rc = extipy_value(result, 1, &value)) == 0)
        host->python = (const struct python_half *)(intptr_t)value.integer;
    extipy_values_free(values);
    extipy_values_free(result);
    return rc;
}

static const struct java_half java_half = {
    .to_java = links_to_java,
    .object_of = links_object_of,
    .is_throwable = value_is_throwable,
    .shell_of = links_shell_of,
    .hand_out = links_hand_out,
    .begin = calls_begin,
    .end = calls_end,
    .invoke = calls_invoke,
};

static int open_context(struct host *host, const char *executable, const char *folder,
                        size_t length, struct exti_error *err)
{
    struct extipy_python *python;
    int rc = extipy_find(&python, executable, err);

    if (rc < 0)
        return rc;
    rc = extipy_open(&host->ctx, python, NULL, err);
    extipy_python_free(python);
    if (rc < 0)
        return rc;
    host->java = java_half;
    host->java.host = host;
    rc = add_path(host->ctx, folder, length, err);
    if (rc == 0)
        rc = begin_module(host, err);
    if (rc == 0)
        rc = links_open(host, err);
    if (rc < 0)
        extipy_close(host->ctx, NULL, NULL, NULL, NULL);
    return rc;
}

NATIVE(jlong, open)
(JNIEnv *env, jclass type, jobject context, jobject links, jstring executable, jstring folder)
{
    const char *path = (*env)->GetStringUTFChars(env, executable, NULL);
    const char *where = path ? (*env)->GetStringUTFChars(env, folder, NULL) : NULL;
    struct host *host = where ? host_new(env, context, links) : NULL;
    struct exti_error err = {.message = "no memory"};

    (void)type;
    if (host && open_context(host, path, where, (size_t)(*env)->GetStringUTFLength(env, folder),
                             &err) < 0) {
        host_release(env, host);
        host = NULL;
    }
    if (where)
        (*env)->ReleaseStringUTFChars(env, folder, where);
    if (path)
        (*env)->ReleaseStringUTFChars(env, executable, path);
    if (!host && !(*env)->ExceptionCheck(env))
        throw_error(env, &err);
    return (jlong)(intptr_t)host;
}

NATIVE(void, markEnd)(JNIEnv *env, jclass type, jobject end)
{
    (void)type;
    java.end = (*env)->NewGlobalRef(env, end);
}

/* ---- operations ------------------------------------------------------------------------------ */

struct operation_job {
    struct host *host;
    enum operation op;
    struct value *args;
    size_t count;
    struct outcome outcome;
};

/* By extipy_visit, as Python code may end the context. */
static int visit(void *user, struct exti_error *err)
{
    struct operation_job *job = user;

    (void)err;
    job->host->python->perform(job->op, job->args, job->count, &job->outcome);
    links_border(job->host);
    return 0;
}

static void throw_python(JNIEnv *env, const struct outcome *o)
{
    jobject type = value_box(env, &o->type);
    jobject message = type ? value_box(env, &o->message) : NULL;
    jobject traceback = message ? value_box(env, &o->traceback) : NULL;
    jobject thrown = traceback ? (*env)->NewObject(env, java.exception, java.new_exception, type,
                                                   message, traceback, o->value.object)
                               : NULL;

    if (thrown)
        (*env)->Throw(env, thrown);
}

static jobject result_of(JNIEnv *env, const struct outcome *o)
{
    if (o->raised == RAISED_NOTHING)
        return value_box(env, &o->value);
    if (o->raised == RAISED_JAVA)
        (*env)->Throw(env, o->value.object);
    else
        throw_python(env, o);
    return NULL;
}

static int read_args(JNIEnv *env, struct operation_job *job, jobjectArray args)
{
    for (size_t i = 0; i < job->count; i++)
        if (value_of(env, job->host, (*env)->GetObjectArrayElement(env, args, (jsize)i),
                     &job->args[i]) < 0)
            return -1;
    return 0;
}

/* Natives have become heavy, and Java does not see them. */
static void ask_for_collection(JNIEnv *env, struct host *host)
{
    if (atomic_load_explicit(&host->collect, memory_order_relaxed) &&
        atomic_exchange(&host->collect, false)) {
        (*env)->CallStaticVoidMethod(env, java.janitor, java.collect);
        (*env)->ExceptionClear(env);
    }
}

static jobject run(JNIEnv *env, struct operation_job *job, jobjectArray args)
{
    struct exti_error err;
    jobject result = NULL;

    if (read_args(env, job, args) == 0) {
        if (extipy_visit(job->host->ctx, visit, job, &err) < 0) {
            throw_error(env, &err);
        } else {
            ask_for_collection(env, job->host);
            result = result_of(env, &job->outcome);
        }
    }
    for (size_t i = 0; i < job->count; i++)
        value_free(&job->args[i]);
    value_free(&job->outcome.value);
    value_free(&job->outcome.type);
    value_free(&job->outcome.message);
    value_free(&job->outcome.traceback);
    return result;
}

NATIVE(jobject, perform)(JNIEnv *env, jclass type, jlong handle, jint op, jobjectArray args)
{
    struct value few[8] = {{0}};
    struct operation_job job = {.host = host_at(handle),
                                .op = (enum operation)op,
                                .count = (size_t)(*env)->GetArrayLength(env, args)};
    jobject result = NULL;

    (void)type;
    if (!java_has_stack()) {
        java_throw(env, java.overflow, "too little stack is left for a call of Python");
        return NULL;
    }
    job.args = job.count <= 8 ? few : calloc(job.count, sizeof *job.args);
    if (!job.args) {
        java_throw(env, java.no_memory, "no memory for arguments");
        return NULL;
    }
    if ((*env)->PushLocalFrame(env, (jint)job.count + 24) == 0)
        result = (*env)->PopLocalFrame(env, run(env, &job, args));
    if (job.args != few)
        free(job.args);
    return result;
}

/* ---- links ----------------------------------------------------------------------------------- */

NATIVE(jlong, newEntry)(JNIEnv *env, jclass type, jlong handle, jobject object)
{
    struct host *host = host_at(handle);
    struct entry *e = entry_new(host);

    (void)type;
    if (e && entry_refer(env, e, object) < 0) {
        entry_free(env, host, e);
        return 0;
    }
    if (!e)
        java_throw(env, java.no_memory, "no memory for a link");
    return (jlong)(intptr_t)e;
}

NATIVE(void, died)(JNIEnv *env, jclass type, jlong handle, jlong entry)
{
    (void)env;
    (void)type;
    links_died(host_at(handle), (struct entry *)(intptr_t)entry);
}

static int visit_collect(void *user, struct exti_error *err)
{
    (void)err;
    links_collect(user);
    return 0;
}

NATIVE(void, collect)(JNIEnv *env, jclass type, jlong handle)
{
    struct host *host = host_at(handle);
    struct exti_error err;

    (void)type;
    if (extipy_visit(host->ctx, visit_collect, host, &err) < 0)
        throw_error(env, &err);
}

/* Links, and those of them that keep their objects. */
NATIVE(jlongArray, count)(JNIEnv *env, jclass type, jlong handle)
{
    struct host *host = host_at(handle);
    struct exti_links_info info = {.size = sizeof info};
    jlongArray out = (*env)->NewLongArray(env, 2);
    struct exti_error err;

    (void)type;
    if (!out)
        return NULL;
    if (extipy_enter(host->ctx, &err) < 0) {
        throw_error(env, &err);
        return NULL;
    }
    exti_links_info(host->links, &info);
    extipy_leave(host->ctx, NULL);
    (*env)->SetLongArrayRegion(env, out, 0, 2, (jlong[]){(jlong)info.links, (jlong)info.strong});
    return out;
}

/* ---- the end --------------------------------------------------------------------------------- */

NATIVE(void, detach)(JNIEnv *env, jclass type, jlong handle)
{
    struct exti_error err;

    (void)type;
    if (extipy_detach(host_at(handle)->ctx, &err) < 0)
        throw_error(env, &err);
}

static int visit_end(void *user, struct exti_error *err)
{
    (void)err;
    links_end(user);
    return 0;
}

/* A context that has exited has no thread that could end its links, nor one that uses them. */
NATIVE(void, finish)(JNIEnv *env, jclass type, jlong handle)
{
    struct host *host = host_at(handle);
    struct exti_error err;

    (void)type;
    extipy_visit(host->ctx, visit_end, host, NULL);
    if (extipy_close(host->ctx, NULL, NULL, NULL, &err) < 0)
        throw_error(env, &err);
}

NATIVE(void, release)(JNIEnv *env, jclass type, jlong handle)
{
    (void)type;
    host_release(env, host_at(handle));
}
