/* An extension module for a stock interpreter.  It runs a second interpreter, as a plug-in host
 * would. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <pthread.h>

#include <extisolate.h>

struct job {
    struct exti_ctx *ctx;
    struct exti_module *api;
    struct exti_error err;
    int rc;
    long result;
};

static int find_symbol(struct job *job, const char *name, void **out)
{
    if (!job->rc)
        job->rc = exti_symbol(job->api, name, out, &job->err);
    return job->rc;
}

/* Runs in a thread of its own, without the host's interpreter. */
static void *run_interpreter(void *arg)
{
    struct job *job = arg;
    void *start, *run_string, *finish, *set_name;

    if (find_symbol(job, "Py_InitializeEx", &start) ||
        find_symbol(job, "PyRun_SimpleString", &run_string) ||
        find_symbol(job, "Py_FinalizeEx", &finish) ||
        find_symbol(job, "Py_SetProgramName", &set_name))
        return NULL;
    ((void (*)(const wchar_t *))set_name)(L"/usr/bin/python3");
    ((void (*)(int))start)(0);
    job->result = ((int (*)(const char *))run_string)(
        "import numpy, json, _decimal\n"
        "assert numpy.dot(numpy.ones(9), numpy.ones(9)) == 9.0\n"
        "assert json.loads('[1]') == [1]\n");
    if (((int (*)(void))finish)())
        job->result = -1;
    return NULL;
}

static int run_context(const char *libpython, struct job *job)
{
    struct exti_ctx_opts opts = {.size = sizeof opts, .api_library = libpython};
    struct exti_proof proof = {.size = sizeof proof};
    pthread_t thread;

    if ((job->rc = exti_ctx_open(&job->ctx, &opts, &job->err)) ||
        (job->rc = exti_api(job->ctx, &job->api, &job->err)))
        return job->rc;
    if (pthread_create(&thread, NULL, run_interpreter, job) || pthread_join(thread, NULL))
        return -1;
    if (!job->rc && !(job->rc = exti_ctx_prove(job->ctx, NULL, NULL, &proof, &job->err)) &&
        proof.leaks)
        job->result = (long)proof.leaks;
    if (!job->rc)
        job->rc = exti_ctx_close(job->ctx, &job->err);
    return job->rc;
}

static PyObject *check(PyObject *self, PyObject *args)
{
    struct job job = {.rc = 0, .result = -1};
    const char *libpython;

    (void)self;
    if (!PyArg_ParseTuple(args, "s", &libpython))
        return NULL;
    for (int round = 0; round < 3; round++) {
        Py_BEGIN_ALLOW_THREADS run_context(libpython, &job);
        Py_END_ALLOW_THREADS if (job.rc) return PyErr_Format(PyExc_RuntimeError, "%s: %s: %s",
                                                             exti_code_name(job.rc), job.err.file,
                                                             job.err.message);
        if (job.result)
            return PyErr_Format(PyExc_RuntimeError, "result %ld in round %d", job.result, round);
    }
    if (PyRun_SimpleString("import numpy; assert numpy.ones(4).sum() == 4.0; print('isolated')"))
        return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {{"check", check, METH_VARARGS, NULL}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "host_pyext", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_host_pyext(void)
{
    return PyModule_Create(&module);
}
