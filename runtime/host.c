#include "runtime/host.h"

#include <sys/resource.h>

#include "runtime/fail.h"

int pyrt_open(struct exti_ctx **out, struct pyrt_api *py, const struct pyrt_install *python,
              struct exti_ctx_opts *opts, struct exti_error *err)
{
    const struct pyrt_build build = {python->minor, python->free_threaded, python->debug};
    struct exti_module *libpython;
    int rc;

    opts->api_library = python->libpython;
    rc = exti_ctx_open(out, opts, err);
    if (rc == 0)
        rc = exti_api(*out, &libpython, err);
    if (rc == 0)
        rc = pyrt_api_find(py, libpython, build, err);
    return rc;
}

size_t pyrt_stack_size(void)
{
    const size_t least = (size_t)8 << 20, most = (size_t)256 << 20;
    struct rlimit lim;

    if (getrlimit(RLIMIT_STACK, &lim) != 0 || lim.rlim_cur == RLIM_INFINITY || lim.rlim_cur < least)
        return least;
    return lim.rlim_cur > most ? most : (size_t)lim.rlim_cur;
}

int pyrt_thread_start(pthread_t *out, void *(*run)(void *arg), void *arg, struct exti_error *err)
{
    pthread_attr_t attr;
    int rc = pthread_attr_init(&attr);

    if (rc == 0) {
        pthread_attr_setstacksize(&attr, pyrt_stack_size());
        rc = pthread_create(out, &attr, run, arg);
        pthread_attr_destroy(&attr);
    }
    return rc == 0 ? 0 : pyrt_fail_os(err, rc, "", "cannot start the context's thread");
}
