/* An event loop that two contexts work for. */
#include <extisolate/python.h>
#include <poll.h>
#include <stdio.h>

static int failed(const struct exti_error *err)
{
    fprintf(stderr, "%s: %s\n", extipy_code_name(err->code), err->message);
    return 1;
}

int main(void)
{
    struct extipy_call call = {.size = sizeof call, .function = "os:getpid"};
    struct extipy_job_opts opts = {.size = sizeof opts};
    struct extipy_python *python;
    struct extipy_ctx *ctx[2];
    struct extipy_job *job;
    struct exti_error err;
    struct pollfd ready = {.events = POLLIN};

    if (extipy_find(&python, "/usr/bin/python3", &err) || extipy_queue_new(&opts.queue, &err))
        return failed(&err);
    for (int i = 0; i < 2; i++)
        if (extipy_open(&ctx[i], python, NULL, &err) ||
            extipy_submit(NULL, ctx[i], &call, &opts, &err)) /* does not wait */
            return failed(&err);
    ready.fd = extipy_queue_fd(opts.queue); /* or by epoll, libuv, asyncio */
    for (int ended = 0; ended < 2;) {
        poll(&ready, 1, -1);
        for (; (job = extipy_queue_next(opts.queue)); ended++) {
            printf("a job has ended: %s\n",
                   extipy_code_name(extipy_job_result(job, NULL, NULL, NULL)));
            extipy_job_release(job);
        }
    }
    for (int i = 0; i < 2; i++)
        if (extipy_close(ctx[i], NULL, NULL, NULL, &err))
            return failed(&err);
    extipy_queue_free(opts.queue);
    extipy_python_free(python);
    return 0;
}
