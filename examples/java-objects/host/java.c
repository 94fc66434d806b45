/* What the host half uses of Java, and threads that Java does not know yet. */
#include "host.h"

struct java java;
static pthread_key_t attached;

/* ---- threads --------------------------------------------------------------------------------- */

static void detach(void *vm)
{
    (*(JavaVM *)vm)->DetachCurrentThread(vm);
}

/* Threads that Python or a context has started are Java's daemons, from their first call on. */
JNIEnv *java_env(void)
{
    void *env = NULL;

    if ((*java.vm)->GetEnv(java.vm, &env, JNI_VERSION_10) == JNI_OK)
        return env;
    if ((*java.vm)->AttachCurrentThreadAsDaemon(java.vm, &env, NULL) != JNI_OK)
        return NULL;
    pthread_setspecific(attached, java.vm);
    return env;
}

void java_throw(JNIEnv *env, jclass type, const char *message)
{
    (*env)->ThrowNew(env, type, message);
}

/* Java's guard pages are for Java's code: native code that gets there ends the process. */
#define STACK_NEEDED (256 << 10)

static char *find_stack(void)
{
    pthread_attr_t attr;
    void *lowest = NULL;
    size_t size;

    if (pthread_getattr_np(pthread_self(), &attr))
        return NULL;
    pthread_attr_getstack(&attr, &lowest, &size);
    pthread_attr_destroy(&attr);
    return lowest;
}

bool java_has_stack(void)
{
    static _Thread_local char *lowest;
    char here;

    if (!lowest)
        lowest = find_stack();
    return (uintptr_t)&here - (uintptr_t)lowest > STACK_NEEDED;
}

/* ---- classes --------------------------------------------------------------------------------- */

static const struct {
    jclass *to;
    const char *name;
} classes[] = {
    {&java.object, "java/lang/Object"},
    {&java.string, "java/lang/String"},
    {&java.throwable, "java/lang/Throwable"},
    {&java.boolean_, "java/lang/Boolean"},
    {&java.long_, "java/lang/Long"},
    {&java.integer, "java/lang/Integer"},
    {&java.double_, "java/lang/Double"},
    {&java.float_, "java/lang/Float"},
    {&java.short_, "java/lang/Short"},
    {&java.byte_, "java/lang/Byte"},
    {&java.illegal_state, "java/lang/IllegalStateException"},
    {&java.no_memory, "java/lang/OutOfMemoryError"},
    {&java.overflow, "java/lang/StackOverflowError"},
    {&java.context, "javaobjects/PythonContext"},
    {&java.proxy, "javaobjects/PyObject"},
    {&java.ref, "javaobjects/Ref"},
    {&java.held, "javaobjects/Held"},
    {&java.holder, "javaobjects/Holder"},
    {&java.exception, "javaobjects/PyException"},
    {&java.marker, "javaobjects/Marker"},
    {&java.reflection, "javaobjects/Reflection"},
    {&java.janitor, "javaobjects/Janitor"},
};

static const struct {
    jmethodID *to;
    const jclass *of;
    int is_static;
    const char *name, *signature;
} methods[] = {
    {&java.boolean_value, &java.boolean_, 0, "booleanValue", "()Z"},
    {&java.value_of_boolean, &java.boolean_, 1, "valueOf", "(Z)Ljava/lang/Boolean;"},
    {&java.value_of_long, &java.long_, 1, "valueOf", "(J)Ljava/lang/Long;"},
    {&java.value_of_double, &java.double_, 1, "valueOf", "(D)Ljava/lang/Double;"},
    {&java.describe, &java.reflection, 1, "describe", "(Ljava/lang/Throwable;)Ljava/lang/String;"},
    {&java.invoke, &java.reflection, 1, "invoke",
     "(ILjava/lang/Object;Ljava/lang/String;[Ljava/lang/Object;)Ljava/lang/Object;"},
    {&java.number_long, &java.reflection, 1, "longValue", "(Ljava/lang/Number;)J"},
    {&java.number_double, &java.reflection, 1, "doubleValue", "(Ljava/lang/Number;)D"},
    {&java.new_proxy, &java.proxy, 0, "<init>", "(Ljavaobjects/PythonContext;J)V"},
    {&java.new_ref, &java.ref, 0, "<init>", "(Ljava/lang/Object;Ljavaobjects/Links;J)V"},
    {&java.new_exception, &java.exception, 0, "<init>",
     "(Ljava/lang/String;Ljava/lang/String;Ljava/lang/String;Ljavaobjects/PyObject;)V"},
    {&java.entry_of, &java.context, 0, "entryOf", "(Ljava/lang/Object;)J"},
    {&java.ordinal, &java.marker, 0, "ordinal", "()I"},
    {&java.collect, &java.janitor, 1, "collect", "()V"},
};

static const struct {
    jfieldID *to;
    const jclass *of;
    const char *name, *signature;
} fields[] = {
    {&java.proxy_context, &java.proxy, "context", "Ljavaobjects/PythonContext;"},
    {&java.proxy_native, &java.proxy, "address", "J"},
    {&java.holder_held, &java.holder, "held", "Ljavaobjects/Held;"},
    {&java.held_object, &java.held, "object", "Ljava/lang/Object;"},
    {&java.held_next, &java.held, "next", "Ljavaobjects/Held;"},
    {&java.exception_value, &java.exception, "value", "Ljavaobjects/PyObject;"},
};

static int find_classes(JNIEnv *env)
{
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++) {
        jclass found = (*env)->FindClass(env, classes[i].name);

        if (!found)
            return -1;
        *classes[i].to = (*env)->NewGlobalRef(env, found);
        (*env)->DeleteLocalRef(env, found);
    }
    return 0;
}

static int find_members(JNIEnv *env)
{
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        *methods[i].to =
            methods[i].is_static
                ? (*env)->GetStaticMethodID(env, *methods[i].of, methods[i].name,
                                            methods[i].signature)
                : (*env)->GetMethodID(env, *methods[i].of, methods[i].name, methods[i].signature);
        if (!*methods[i].to)
            return -1;
    }
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        *fields[i].to = (*env)->GetFieldID(env, *fields[i].of, fields[i].name, fields[i].signature);
        if (!*fields[i].to)
            return -1;
    }
    return 0;
}

JNIEXPORT jint JNICALL JNI_OnLoad(JavaVM *vm, void *unused)
{
    JNIEnv *env;

    (void)unused;
    java.vm = vm;
    env = java_env();
    if (!env || pthread_key_create(&attached, detach) || find_classes(env) || find_members(env))
        return JNI_ERR;
    return JNI_VERSION_10;
}
