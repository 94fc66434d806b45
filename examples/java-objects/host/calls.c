/* Calls of Java by Python. */
#include "host.h"

int calls_begin(struct host *host, size_t count)
{
    JNIEnv *env = java_env();

    if (!java_has_stack())
        return REASON_STACK;
    if (!env)
        return REASON_THREAD;
    if ((*env)->PushLocalFrame(env, (jint)count + 16) < 0) {
        (*env)->ExceptionClear(env);
        return REASON_NOMEM;
    }
    host_keep(host);
    return 0;
}

void calls_end(struct host *host)
{
    JNIEnv *env = java_env();

    (*env)->PopLocalFrame(env, NULL);
    host_release(env, host);
}

/* NULL: a Java exception is pending. */
static jobjectArray box_all(JNIEnv *env, const struct value *args, size_t count)
{
    jobjectArray array = (*env)->NewObjectArray(env, (jsize)count, java.object, NULL);

    for (size_t i = 0; array && i < count; i++) {
        jobject boxed = value_box(env, &args[i]);

        if ((*env)->ExceptionCheck(env))
            return NULL;
        (*env)->SetObjectArrayElement(env, array, (jsize)i, boxed);
    }
    return array;
}

static jobject call(JNIEnv *env, enum request request, jobject object, const struct value *name,
                    const struct value *args, size_t count)
{
    jobjectArray boxed = box_all(env, args, count);
    jstring text;

    if (!boxed)
        return NULL;
    text = name ? value_box(env, name) : NULL;
    if ((*env)->ExceptionCheck(env))
        return NULL;
    return (*env)->CallStaticObjectMethod(env, java.reflection, java.invoke, (jint)request, object,
                                          text, boxed);
}

void calls_invoke(struct host *host, enum request request, void *object, const struct value *name,
                  struct value *args, size_t count, struct outcome *out)
{
    JNIEnv *env = java_env();
    jobject result = call(env, request, object, name, args, count);
    jthrowable thrown = (*env)->ExceptionOccurred(env);

    *out = (struct outcome){.raised = RAISED_NOTHING};
    if (!thrown && value_of(env, host, result, &out->value) < 0)
        thrown = (*env)->ExceptionOccurred(env);
    if (thrown) {
        (*env)->ExceptionClear(env);
        value_thrown(env, host, thrown, out);
    }
}
