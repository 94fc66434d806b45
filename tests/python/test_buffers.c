/* Memory is shared between the program and contexts without a copy, as long as anyone uses it. */
#include "tests/python/support/host.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static atomic_int released;

static void count_release(void *user)
{
    (void)user;
    released++;
}

/* A buffer of the program's, whose release is counted. */
static struct extipy_buffer *new_buffer(const struct extipy_buffer_info *info)
{
    struct extipy_buffer *b = NULL;
    struct exti_error err = {0};

    released = 0;
    assert_ok(extipy_buffer_new(&b, info, count_release, NULL, &err), &err);
    return b;
}

/* Calls __main__.FUNCTION with the buffer. */
static struct extipy_object *call_with(struct extipy_ctx *c, const char *function,
                                       struct extipy_buffer *b)
{
    struct extipy_call call = {.size = sizeof call, .function = function, .stay = 1};
    struct extipy_value value = {.size = sizeof value};
    struct extipy_values *v = NULL, *result = NULL;
    struct extipy_object *object;
    struct exti_error err = {0};
    size_t number;

    assert_ok(extipy_values_new(&v, &err), &err);
    if (b) {
        number = extipy_buffer(v, b);
        call.values = v;
        call.args = extipy_container(v, EXTIPY_TUPLE, &number, 1);
    }
    assert_ok(extipy_call(c, &call, &result, NULL, &err), &err);
    assert_int_equal(extipy_value(result, 1, &value), 0);
    object = extipy_object_keep(value.object);
    extipy_values_free(result);
    extipy_values_free(v);
    return object;
}

static void call_only(struct extipy_ctx *c, const char *function, struct extipy_buffer *b)
{
    extipy_object_release(call_with(c, function, b));
}

static struct extipy_ctx *open_with(const char *source)
{
    struct extipy_ctx *c = host_open();

    host_run(c, source);
    return c;
}

/* The memory of what __main__.make() returns. */
static struct extipy_buffer *made_in(struct extipy_ctx *c)
{
    struct extipy_object *object = call_with(c, "__main__:make", NULL);
    struct extipy_buffer *b = NULL;
    struct exti_error err = {0};

    assert_ok(extipy_buffer_of(&b, object, 1, NULL, &err), &err);
    extipy_object_release(object);
    return b;
}

static unsigned char *data_of(const struct extipy_buffer *b)
{
    struct extipy_buffer_info info = {.size = sizeof info};

    assert_int_equal(extipy_buffer_info(b, &info), 0);
    return info.data;
}

static void wait_until(int (*holds)(void))
{
    for (int i = 0; i < 6000 && !holds(); i++)
        usleep(10000);
    assert_true(holds());
}

/* ---- the program's memory ---- */

static const char takes[] = "def take(m): global kept; kept = m\n"
                            "def drop(): global kept; kept = None\n";

static void memory_of_the_program_is_shared(void **state)
{
    unsigned char data[] = {1, 2, 3, 4};
    struct extipy_buffer_info info = {.size = sizeof info, .data = data, .length = 4};
    struct extipy_ctx *c[2] = {open_with(takes), open_with(takes)};
    struct extipy_buffer *b = new_buffer(&info);

    (void)state;
    for (int i = 0; i < 2; i++)
        call_only(c[i], "__main__:take", b);
    extipy_buffer_release(b);
    host_run(c[0], "assert kept.tolist() == [1, 2, 3, 4]; kept[0] = 9");
    assert_int_equal(data[0], 9);
    data[1] = 8;
    host_run(c[1], "assert kept.tolist() == [9, 8, 3, 4]");
    host_run(c[0], "drop()");
    assert_int_equal(released, 0);
    host_run(c[1], "drop()");
    assert_int_equal(released, 1);
    host_close(c[0]);
    host_close(c[1]);
}

static void shape_and_format_are_kept(void **state)
{
    static const ptrdiff_t shape[] = {2, 3}, strides[] = {-24, 8};
    double data[] = {4, 5, 6, 1, 2, 3};
    struct extipy_buffer_info info = {.size = sizeof info,
                                      .data = data + 3,
                                      .length = 48,
                                      .item_size = 8,
                                      .readonly = 1,
                                      .dimensions = 2,
                                      .format = "d",
                                      .shape = shape,
                                      .strides = strides};
    struct extipy_ctx *c = open_with(takes);
    struct extipy_buffer *b = new_buffer(&info);

    (void)state;
    call_only(c, "__main__:take", b);
    extipy_buffer_release(b);
    host_run(c, "assert kept.shape == (2, 3) and kept.strides == (-24, 8)\n"
                "assert kept.format == 'd' and kept.itemsize == 8 and kept.readonly\n"
                "assert kept.tolist() == [[1, 2, 3], [4, 5, 6]] and not kept.c_contiguous\n"
                "try: kept[0, 0] = 1\n"
                "except TypeError: pass\n"
                "else: assert 0\n"
                "import struct\n"
                "try: struct.unpack_from('b', kept.obj)\n"
                "except BufferError as e: assert 'lie' in str(e)\n"
                "else: assert 0\n"
                "try: struct.pack_into('b', kept.obj, 0, 1)\n"
                "except (BufferError, TypeError): pass\n"
                "else: assert 0\n"
                "try:\n"
                "    import numpy\n"
                "except ImportError: pass\n"
                "else:\n"
                "    a = numpy.asarray(kept)\n"
                "    assert a.dtype == float and a.sum() == 21 and not a.flags.writeable\n"
                "    assert a.__array_interface__['strides'] == (-24, 8); del a\n");
    host_run(c, "drop()");
    assert_int_equal(released, 1);
    host_close(c);
}

static void items_and_no_dimensions(void **state)
{
    int32_t data[] = {7, 8};
    ptrdiff_t none = 0;
    struct extipy_buffer_info info = {
        .size = sizeof info, .data = data, .length = 8, .item_size = 4, .format = "i"};
    struct extipy_ctx *c = open_with(takes);
    struct extipy_buffer *b = new_buffer(&info);

    (void)state;
    call_only(c, "__main__:take", b);
    host_run(c, "assert kept.shape == (2,) and kept.tolist() == [7, 8]");
    extipy_buffer_release(b);
    info.length = 4;
    info.shape = &none;
    b = new_buffer(&info);
    call_only(c, "__main__:take", b);
    host_run(c, "assert kept.shape == () and kept.tolist() == 7; drop()");
    assert_int_equal(released, 1); /* the first one's */
    extipy_buffer_release(b);
    assert_int_equal(released, 2);
    host_close(c);
}

/* By flags of PyObject_GetBuffer: which of format, shape and strides there are, or "no". */
static const char asks[] =
    "import ctypes\n"
    "class View(ctypes.Structure):\n"
    "    _fields_ = [('buf', ctypes.c_void_p), ('obj', ctypes.c_void_p), ('len', "
    "ctypes.c_ssize_t),\n"
    "                ('itemsize', ctypes.c_ssize_t), ('readonly', ctypes.c_int),\n"
    "                ('ndim', ctypes.c_int), ('format', ctypes.c_void_p),\n"
    "                ('shape', ctypes.c_void_p), ('strides', ctypes.c_void_p),\n"
    "                ('suboffsets', ctypes.c_void_p), ('internal', ctypes.c_void_p)]\n"
    "def ask(flags):\n"
    "    v = View()\n"
    "    try:\n"
    "        ctypes.pythonapi.PyObject_GetBuffer(ctypes.py_object(kept.obj), ctypes.byref(v), "
    "flags)\n"
    "    except BufferError: return 'no'\n"
    "    said = 'f' * bool(v.format) + 'n' * bool(v.shape) + 's' * bool(v.strides)\n"
    "    assert v.obj == id(kept.obj) and v.len == 6\n"
    "    ctypes.pythonapi.PyBuffer_Release(ctypes.byref(v))\n"
    "    return said\n"
    "def answers(): return [ask(flags) for flags in (0, 4, 8, 24, 28, 56, 88, 152, 1)]\n";

static void who_asks_gets_what_is_asked_for(void **state)
{
    static const ptrdiff_t shape[] = {2, 3}, fortran[] = {1, 2}, gaps[] = {6, 2};
    static const struct {
        const ptrdiff_t *strides;
        const char *answers;
    } ways[] = {
        {NULL, "['', 'f', 'n', 'ns', 'fns', 'ns', 'no', 'ns', 'no']"},
        {fortran, "['no', 'no', 'no', 'ns', 'fns', 'no', 'ns', 'ns', 'no']"},
        {gaps, "['no', 'no', 'no', 'ns', 'fns', 'no', 'no', 'no', 'no']"},
    };
    struct extipy_ctx *c = open_with(takes);
    char data[12], check[200];

    (void)state;
    host_run(c, asks);
    for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
        struct extipy_buffer *b =
            new_buffer(&(struct extipy_buffer_info){.size = sizeof(struct extipy_buffer_info),
                                                    .data = data,
                                                    .length = 6,
                                                    .readonly = 1,
                                                    .dimensions = 2,
                                                    .shape = shape,
                                                    .strides = ways[i].strides});

        call_only(c, "__main__:take", b);
        extipy_buffer_release(b);
        snprintf(check, sizeof check, "assert answers() == %s, answers()", ways[i].answers);
        host_run(c, check);
        host_run(c, "drop()");
        assert_int_equal(released, 1);
    }
    host_close(c);
}

static void wrong_descriptions_are_refused(void **state)
{
    static const ptrdiff_t two = 2, less = -1, much[] = {PTRDIFF_MAX, 4}, empty[] = {0, 3};
    char data[8];
    const struct extipy_buffer_info wrong[] = {
        {.size = sizeof *wrong, .data = NULL, .length = 8},
        {.size = sizeof *wrong, .data = data, .length = 8, .item_size = 3},
        {.size = sizeof *wrong, .data = data, .length = 8, .dimensions = 65, .shape = &two},
        {.size = sizeof *wrong, .data = data, .length = 8, .dimensions = -1},
        {.size = sizeof *wrong, .data = data, .length = 8, .dimensions = 2},
        {.size = sizeof *wrong, .data = data, .length = 8, .dimensions = 1, .shape = &two},
        {.size = sizeof *wrong, .data = data, .length = 8, .dimensions = 1, .shape = &less},
        {.size = sizeof *wrong, .data = data, .length = 8, .strides = &two},
        {.size = sizeof *wrong, .data = data, .length = SIZE_MAX},
        {.size = sizeof *wrong, .data = data, .length = 0, .item_size = SIZE_MAX},
        {.size = sizeof *wrong, .data = data, .length = 8, .dimensions = 2, .shape = much},
        {.size = sizeof *wrong, .data = data, .length = 8, .dimensions = 2, .shape = empty},
        {.size = 0},
    };
    const struct extipy_buffer_info right = {.size = sizeof right};
    struct extipy_buffer_info got = {.size = sizeof got};
    struct extipy_buffer *b = NULL;
    struct test *t = *state;

    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
        assert_int_equal(extipy_buffer_new(&b, &wrong[i], NULL, NULL, &t->err), EXTI_E_ARG);
    assert_int_equal(extipy_buffer_new(&b, NULL, NULL, NULL, &t->err), EXTI_E_ARG);
    assert_int_equal(extipy_buffer_new(NULL, &right, NULL, NULL, &t->err), EXTI_E_ARG);
    assert_int_equal(extipy_buffer_of(&b, NULL, 0, NULL, &t->err), EXTI_E_ARG);
    assert_null(b);
    assert_int_equal(extipy_buffer_info(NULL, &got), EXTI_E_ARG);
    assert_ok(extipy_buffer_new(&b, &right, NULL, NULL, &t->err), &t->err);
    assert_int_equal(extipy_buffer_info(b, NULL), EXTI_E_ARG);
    assert_int_equal(extipy_buffer_info(b, &got), 0);
    assert_int_equal(got.length, 0);
    assert_int_equal(got.item_size, 1);
    extipy_buffer_release(b);
    extipy_buffer_release(NULL);
    assert_null(extipy_buffer_keep(NULL));
}

static void objects_of_others_are_refused(void **state)
{
    struct extipy_call call = {.size = sizeof call, .function = "builtins:bytes"};
    struct extipy_buffer_info info = {
        .size = sizeof info, .data = &info, .length = sizeof(void *), .item_size = sizeof(void *)};
    const char *const formats[] = {"O", "2O", "T{O:name:}", "T{l:Other:O:name:}"};
    struct extipy_ctx *c = host_open();
    struct test *t = *state;
    struct extipy_values *v;
    struct extipy_buffer *b;
    size_t number;

    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        info.format = formats[i];
        assert_ok(extipy_buffer_new(&b, &info, NULL, NULL, &t->err), &t->err);
        assert_ok(extipy_values_new(&v, &t->err), &t->err);
        number = extipy_buffer(v, b);
        call.values = v;
        call.args = extipy_container(v, EXTIPY_TUPLE, &number, 1);
        assert_int_equal(extipy_call(c, &call, NULL, NULL, &t->err), EXTIPY_E_RAISED);
        assert_says(&t->err, "objects of another interpreter");
        extipy_values_free(v);
        extipy_buffer_release(b);
    }
    info.format = "T{l:Other:}"; /* a name alone */
    info.shape = NULL;
    assert_ok(extipy_buffer_new(&b, &info, NULL, NULL, &t->err), &t->err);
    assert_ok(extipy_values_new(&v, &t->err), &t->err);
    number = extipy_buffer(v, b);
    call.function = "builtins:type";
    call.values = v;
    call.args = extipy_container(v, EXTIPY_TUPLE, &number, 1);
    assert_ok(extipy_call(c, &call, NULL, NULL, &t->err), &t->err);
    extipy_values_free(v);
    extipy_buffer_release(b);
    host_close(c);
}

/* ---- a context's memory ---- */

static const char makes[] =
    "import weakref\n"
    "try:\n"
    "    import numpy\n"
    "    def make(): global a; a = numpy.arange(1000000, dtype='u1'); return a\n"
    "except ImportError:\n"
    "    class A(bytearray): pass\n"
    "    def make(): global a; a = A(i % 256 for i in range(1000000)); return a\n"
    "def drop(): global a; del a\n"
    "def home(m): assert m.obj is a\n";

static void an_array_is_shared(void **state)
{
    struct extipy_ctx *a = open_with(makes), *b = open_with(takes);
    struct extipy_buffer *memory = made_in(a);
    struct extipy_buffer_info info = {.size = sizeof info};

    (void)state;
    assert_int_equal(extipy_buffer_info(memory, &info), 0);
    assert_int_equal(info.length, 1000000);
    assert_int_equal(info.dimensions, 1);
    assert_int_equal(info.shape[0], 1000000);
    assert_string_equal(info.format, "B");
    assert_int_equal(((unsigned char *)info.data)[255], 255);
    call_only(b, "__main__:take", memory);
    host_run(b, "assert kept[7] == 7; kept[7] = 70");
    assert_int_equal(host_long(a, "int(a[7])"), 70);
    ((unsigned char *)info.data)[8] = 80;
    host_run(b, "assert kept[8] == 80");
    call_only(a, "__main__:home", memory);
    extipy_buffer_release(memory);
    host_close(b);
    host_close(a);
}

static void c_code_inside_lends_and_borrows(void **state)
{
    struct extipy_ctx *c = open_with(takes);
    unsigned char bytes[8] = {0};
    struct extipy_buffer *b = new_buffer(&(struct extipy_buffer_info){
        .size = sizeof(struct extipy_buffer_info), .data = bytes, .length = sizeof bytes});
    struct extipy_buffer_info info = {.size = sizeof info};
    struct extipy_buffer *from = NULL;
    struct exti_error err = {0};
    void *(*import)(const char *), *view = NULL;
    int (*set)(void *, const char *, void *);
    void (*drop)(void *);

    (void)state;
    host_symbol(c, "PyImport_AddModule", &import);
    host_symbol(c, "PyObject_SetAttrString", &set);
    host_symbol(c, "Py_DecRef", &drop);
    assert_int_equal(extipy_buffer_object(&view, c, b, &err), EXTIPY_E_PLACE);
    assert_ok(extipy_enter(c, &err), &err);
    assert_int_equal(extipy_buffer_object(&view, c, NULL, &err), EXTI_E_ARG);
    assert_ok(extipy_buffer_object(&view, c, b, &err), &err);
    assert_int_equal(set(import("__main__"), "given", view), 0);
    assert_int_equal(extipy_buffer_from(&from, c, NULL, &err), EXTI_E_ARG);
    assert_int_equal(extipy_buffer_from(&from, c, import("__main__"), &err), EXTIPY_E_RAISED);
    assert_ok(extipy_buffer_from(&from, c, view, &err), &err);
    drop(view);
    assert_ok(extipy_leave(c, &err), &err);
    assert_int_equal(extipy_buffer_from(&from, c, view, &err), EXTIPY_E_PLACE);
    assert_int_equal(extipy_buffer_info(from, &info), 0);
    assert_ptr_equal(info.data, bytes);
    extipy_buffer_release(from);
    extipy_buffer_release(b);
    host_run(c, "view = memoryview(given); view[3] = 7");
    assert_int_equal(bytes[3], 7);
    assert_int_equal(released, 0);
    host_run(c, "del view, given");
    assert_int_equal(released, 1);
    host_close(c);
}

/* What a context was given and gives on is not its own, so its end does not wait for that. */
static void memory_of_others_is_not_lent(void **state)
{
    struct extipy_ctx *c = open_with(takes);
    unsigned char bytes[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    struct extipy_buffer *b = new_buffer(&(struct extipy_buffer_info){
        .size = sizeof(struct extipy_buffer_info), .data = bytes, .length = sizeof bytes});
    struct extipy_closed closed = {.size = sizeof closed};
    struct extipy_buffer_info info = {.size = sizeof info};
    struct extipy_buffer *part = NULL;
    struct extipy_object *view;
    struct exti_error err = {0};

    (void)state;
    host_run(c, "def part(m): return m[6:2:-2]");
    view = call_with(c, "__main__:part", b);
    assert_ok(extipy_buffer_of(&part, view, 0, NULL, &err), &err);
    extipy_object_release(view);
    extipy_buffer_release(b);
    assert_ok(extipy_close(c, NULL, NULL, &closed, &err), &err);
    assert_int_equal(closed.buffers, 0);
    assert_int_equal(released, 0);
    assert_int_equal(extipy_buffer_info(part, &info), 0);
    assert_ptr_equal(info.data, bytes + 6);
    assert_int_equal(info.shape[0], 2);
    assert_int_equal(info.strides[0], -2);
    extipy_buffer_release(part);
    assert_int_equal(released, 1);
}

static struct extipy_ctx *watched;

static int array_is_gone(void)
{
    return host_long(watched, "w() is None") == 1;
}

static void an_array_lives_as_long_as_its_buffer(void **state)
{
    struct extipy_ctx *a = watched = open_with(makes), *b = open_with(takes);
    struct extipy_buffer *memory = made_in(a);

    (void)state;
    host_run(a, "w = weakref.ref(a); drop()");
    call_only(b, "__main__:take", memory);
    extipy_buffer_release(memory);
    assert_int_equal(host_long(a, "w() is None"), 0);
    host_run(b, "assert kept[9] == 9; drop()");
    wait_until(array_is_gone);
    host_close(a);
    host_close(b);
}

static void what_has_no_memory_raises(void **state)
{
    struct extipy_ctx *c = open_with("def make(): return 3\ndef fixed(): return b'x'\n");
    struct extipy_object *object = call_with(c, "__main__:make", NULL);
    struct extipy_buffer *b = NULL;
    struct extipy_exception *e = NULL;
    struct test *t = *state;

    assert_int_equal(extipy_buffer_of(&b, object, 0, &e, &t->err), EXTIPY_E_RAISED);
    assert_string_equal(e->type, "TypeError");
    extipy_exception_free(e);
    extipy_object_release(object);
    object = call_with(c, "__main__:fixed", NULL);
    assert_int_equal(extipy_buffer_of(&b, object, 1, NULL, &t->err), EXTIPY_E_RAISED);
    assert_says(&t->err, "BufferError");
    assert_ok(extipy_buffer_of(&b, object, 0, NULL, &t->err), &t->err);
    assert_int_equal(data_of(b)[0], 'x');
    extipy_buffer_release(b);
    extipy_object_release(object);
    assert_int_equal(extipy_buffer_of(&b, NULL, 0, NULL, &t->err), EXTI_E_ARG);
    host_close(c);
}

/* ---- the end of contexts ---- */

static int none_lingers(void)
{
    return extipy_lingering() == 0;
}

/* Whether a file whose name has `name` in it is mapped. */
static int is_mapped(const char *name)
{
    FILE *f = fopen("/proc/self/maps", "re");
    char line[4096];
    int found = 0;

    assert_non_null(f);
    while (fgets(line, sizeof line, f))
        found |= strstr(line, name) != NULL;
    fclose(f);
    return found;
}

static void memory_outlives_its_context(void **state)
{
    struct extipy_closed closed = {.size = sizeof closed};
    struct extipy_ctx *a = open_with(makes), *b = open_with(takes);
    struct extipy_buffer *memory = made_in(a);
    struct test *t = *state;
    char *path = test_path(t, "said"), *name;

    name = test_format(t, "%s", exti_ctx_name(extipy_loader(a)));
    host_run(a, test_format(t,
                            "import atexit\n"
                            "atexit.register(lambda: print('end', file=open('%s', 'a')))",
                            path));
    call_only(b, "__main__:take", memory);
    assert_ok(extipy_close(a, NULL, NULL, &closed, &t->err), &t->err);
    assert_int_equal(closed.buffers, 1);
    assert_int_equal(closed.mapped, 0);
    assert_int_equal(extipy_lingering(), 1);
    assert_string_equal(test_read(t, path, NULL), "end\n");
    assert_int_equal(data_of(memory)[200], 200);
    host_run(b, "assert kept[77] == 77; kept[78] = 0");
    assert_int_equal(data_of(memory)[78], 0);
    extipy_buffer_release(memory);
    assert_int_equal(extipy_lingering(), 1);
    assert_true(is_mapped(name));
    /* The other context has the last reference. */
    host_close(b);
    wait_until(none_lingers);
    assert_false(is_mapped(name));
    assert_string_equal(test_read(t, path, NULL), "end\n");
}

static void the_end_gives_back_what_leaks(void **state)
{
    unsigned char data[1] = {5};
    struct extipy_buffer_info info = {.size = sizeof info, .data = data, .length = 1};
    struct extipy_ctx *c = open_with("import ctypes\n"
                                     "def take(m):\n"
                                     "    for x in m, m.obj:\n"
                                     "        ctypes.pythonapi.Py_IncRef(ctypes.py_object(x))\n");
    struct extipy_buffer *b = new_buffer(&info);

    (void)state;
    call_only(c, "__main__:take", b);
    extipy_buffer_release(b);
    assert_int_equal(released, 0);
    host_close(c);
    assert_int_equal(released, 1);
}

#define READERS 8

static sem_t ready, closed_now;

struct reader {
    struct extipy_ctx *ctx;
    struct extipy_buffer *memory;
};

static void *read_memory(void *arg)
{
    struct reader *r = arg;
    unsigned char *data;
    long sum = 0;

    call_only(r->ctx, "__main__:take", r->memory);
    data = data_of(r->memory);
    sem_post(&ready);
    while (sem_wait(&closed_now) != 0)
        continue;
    for (int i = 0; i < 1000000; i++)
        sum += data[i];
    if (sum < 100000000)
        abort();
    if (extipy_enter(r->ctx, NULL) != 0 ||
        host_run_inside(r->ctx, "assert sum(kept) > 100000000; drop()") != 0)
        abort();
    extipy_leave(r->ctx, NULL);
    extipy_detach(r->ctx, NULL);
    extipy_buffer_release(r->memory);
    return NULL;
}

static void importers_read_on_when_the_exporter_closes(void **state)
{
    struct extipy_ctx *a = open_with(makes), *b[2] = {open_with(takes), open_with(takes)};
    struct extipy_closed closed = {.size = sizeof closed};
    struct extipy_buffer *memory = made_in(a);
    struct reader readers[READERS];
    pthread_t t[READERS];

    (void)state;
    test_time_limit(300);
    host_run(b[0], "kept = []\ndef take(m): kept.append(m)\ndef drop(): kept.pop()\n"
                   "def sum(x, sum=sum): return sum(x[-1])");
    host_run(b[1], "kept = []\ndef take(m): kept.append(m)\ndef drop(): kept.pop()\n"
                   "def sum(x, sum=sum): return sum(x[-1])");
    sem_init(&ready, 0, 0);
    sem_init(&closed_now, 0, 0);
    for (int i = 0; i < READERS; i++) {
        readers[i] = (struct reader){b[i % 2], extipy_buffer_keep(memory)};
        assert_int_equal(pthread_create(&t[i], NULL, read_memory, &readers[i]), 0);
    }
    for (int i = 0; i < READERS; i++)
        while (sem_wait(&ready) != 0)
            continue;
    extipy_buffer_release(memory);
    assert_int_equal(extipy_close(a, NULL, NULL, &closed, NULL), 0);
    assert_int_equal(closed.buffers, 1);
    for (int i = 0; i < READERS; i++)
        sem_post(&closed_now);
    for (int i = 0; i < READERS; i++)
        assert_int_equal(pthread_join(t[i], NULL), 0);
    wait_until(none_lingers);
    test_time_limit(0);
    host_close(b[0]);
    host_close(b[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        exti_test(memory_of_the_program_is_shared),
        exti_test(shape_and_format_are_kept),
        exti_test(items_and_no_dimensions),
        exti_test(who_asks_gets_what_is_asked_for),
        exti_test(wrong_descriptions_are_refused),
        exti_test(objects_of_others_are_refused),
        exti_test(an_array_is_shared),
        exti_test(memory_of_others_is_not_lent),
        exti_test(c_code_inside_lends_and_borrows),
        exti_test(an_array_lives_as_long_as_its_buffer),
        exti_test(what_has_no_memory_raises),
        exti_test(memory_outlives_its_context),
        exti_test(the_end_gives_back_what_leaks),
        exti_test(importers_read_on_when_the_exporter_closes),
    };

    return cmocka_run_group_tests_name("python/buffers", tests, NULL, NULL);
}
