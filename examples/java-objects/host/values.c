/* Values of Java, and those that travel.  All without a GIL, as boxing runs Java's code. */
#include <stdlib.h>

#include "host.h"

static bool is(JNIEnv *env, jobject object, jclass type)
{
    return (*env)->IsInstanceOf(env, object, type);
}

static int text_of(JNIEnv *env, jstring string, struct value *out)
{
    const jsize length = (*env)->GetStringLength(env, string);

    *out = (struct value){.kind = KIND_STR, .length = (size_t)length};
    out->text = malloc(((size_t)length + 1) * sizeof *out->text);
    if (!out->text) {
        java_throw(env, java.no_memory, "no memory for a string");
        return -1;
    }
    (*env)->GetStringRegion(env, string, 0, length, out->text);
    return 0;
}

static bool is_own(JNIEnv *env, struct host *host, jobject proxy)
{
    jobject context = (*env)->GetObjectField(env, proxy, java.proxy_context);
    const bool own = (*env)->IsSameObject(env, context, host->context);

    (*env)->DeleteLocalRef(env, context);
    return own;
}

/* A proxy of another context is a Java object as any other. */
static int object_of(JNIEnv *env, struct host *host, jobject object, struct value *out)
{
    jlong word;

    if (is(env, object, java.proxy) && is_own(env, host, object)) {
        word = (*env)->GetLongField(env, object, java.proxy_native);
        *out =
            (struct value){.kind = KIND_NATIVE, .native = (void *)(intptr_t)word, .object = object};
        return 0;
    }
    word = (*env)->CallLongMethod(env, host->context, java.entry_of, object);
    if ((*env)->ExceptionCheck(env))
        return -1;
    *out = (struct value){
        .kind = KIND_OBJECT, .entry = (struct entry *)(intptr_t)word, .object = object};
    return 0;
}

/* -1: a Java exception is pending. */
int value_of(JNIEnv *env, struct host *host, jobject object, struct value *out)
{
    *out = (struct value){.kind = KIND_NONE};
    if (!object)
        return 0;
    if (is(env, object, java.string))
        return text_of(env, object, out);
    if (is(env, object, java.boolean_)) {
        out->kind = KIND_BOOL;
        out->integer = (*env)->CallBooleanMethod(env, object, java.boolean_value);
    } else if (is(env, object, java.long_) || is(env, object, java.integer) ||
               is(env, object, java.short_) || is(env, object, java.byte_)) {
        out->kind = KIND_INT;
        out->integer = (*env)->CallStaticLongMethod(env, java.reflection, java.number_long, object);
    } else if (is(env, object, java.double_) || is(env, object, java.float_)) {
        out->kind = KIND_FLOAT;
        out->real =
            (*env)->CallStaticDoubleMethod(env, java.reflection, java.number_double, object);
    } else if (is(env, object, java.marker)) {
        out->kind = KIND_END + (unsigned)(*env)->CallIntMethod(env, object, java.ordinal);
    } else {
        return object_of(env, host, object, out);
    }
    return (*env)->ExceptionCheck(env) ? -1 : 0;
}

/* NULL: None, or a Java exception is pending. */
jobject value_box(JNIEnv *env, const struct value *value)
{
    switch (value->kind) {
    case KIND_BOOL:
        return (*env)->CallStaticObjectMethod(env, java.boolean_, java.value_of_boolean,
                                              (jboolean)(value->integer != 0));
    case KIND_INT:
        return (*env)->CallStaticObjectMethod(env, java.long_, java.value_of_long,
                                              (jlong)value->integer);
    case KIND_FLOAT:
        return (*env)->CallStaticObjectMethod(env, java.double_, java.value_of_double, value->real);
    case KIND_STR:
        return (*env)->NewString(env, value->text, (jsize)value->length);
    case KIND_END:
        return (*env)->NewLocalRef(env, java.end);
    default:
        return value->object;
    }
}

void value_free(struct value *value)
{
    free(value->text);
    value->text = NULL;
}

/* ---- exceptions ------------------------------------------------------------------------------ */

int value_is_throwable(void *object)
{
    return is(java_env(), object, java.throwable);
}

static jobject python_exception(JNIEnv *env, jthrowable thrown)
{
    return is(env, thrown, java.exception)
               ? (*env)->GetObjectField(env, thrown, java.exception_value)
               : NULL;
}

/* A Python exception that comes home is itself; any other Throwable is an object. */
void value_thrown(JNIEnv *env, struct host *host, jthrowable thrown, struct outcome *out)
{
    jobject value = python_exception(env, thrown);
    jstring text;

    *out = (struct outcome){.raised = RAISED_JAVA};
    if (value && is_own(env, host, value)) {
        out->raised = RAISED_PYTHON;
        thrown = value;
    } else {
        text = (*env)->CallStaticObjectMethod(env, java.reflection, java.describe, thrown);
        if (text && !(*env)->ExceptionCheck(env))
            text_of(env, text, &out->message);
        (*env)->ExceptionClear(env);
    }
    if (object_of(env, host, thrown, &out->value) < 0) {
        (*env)->ExceptionClear(env); /* the context is closed, or there is no memory */
        out->value = (struct value){.kind = KIND_NONE};
    }
}
