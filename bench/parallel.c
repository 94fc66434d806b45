/* A CPU-bound script in two contexts at once, compared with one after the other. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/bench.h"

#define SECTION "a CPU-bound script with numpy in two contexts, whole processes"

/* Half plain Python, half numpy on small arrays: neither releases the GIL for long. */
static const char script[] = "import sys, numpy\n"
                             "def work(n):\n"
                             "    total, a = 0, numpy.arange(64.0)\n"
                             "    for i in range(n):\n"
                             "        total += i * i % 7\n"
                             "        if i % 8 == 0:\n"
                             "            a = numpy.sqrt(a * a + 1.0)\n"
                             "    return total, a.sum()\n"
                             "for _ in range(int(sys.argv[1])):\n"
                             "    work(int(sys.argv[2]))\n";

static double run_contexts(const struct bench *b, const char *path, const char *contexts,
                           const char *times, const char *size)
{
    char *argv[] = {arg(b->program), "run",     "--contexts", arg(contexts), "--python",
                    arg(b->python),  arg(path), arg(times),   arg(size),     NULL};

    return run(argv).wall;
}

/* Runs the interpreter in two processes, as the most that this machine can do. */
static double run_processes(const struct bench *b, const char *path, const char *size,
                            const char *separator)
{
    char *command = NULL;
    char *argv[] = {arg("sh"), arg("-c"), NULL, NULL};
    double wall;

    if (asprintf(&command, "'%s' '%s' 1 %s %s '%s' '%s' 1 %s; wait", b->python, path, size,
                 separator, b->python, path, size) < 0)
        die("out of memory");
    argv[2] = command;
    wall = run(argv).wall;
    free(command);
    return wall;
}

void bench_parallel(const struct bench *b)
{
    static struct samples both, one_twice, one_doing_two, startup, processes, one_by_one;
    const char *size = b->quick ? "2000000" : "8000000";
    char *path = path_in(b, "work.py");
    FILE *f = fopen(path, "we");

    if (!f || fputs(script, f) < 0 || fclose(f) != 0)
        die("cannot write %s", path);
    /* Threads of the linear algebra library would distort the measurement. */
    setenv("OPENBLAS_NUM_THREADS", "1", 1);
    for (int i = 0; i < (b->quick ? 1 : 3); i++) {
        add_sample(&both, run_contexts(b, path, "2", "1", size));
        add_sample(&one_twice,
                   run_contexts(b, path, "1", "1", size) + run_contexts(b, path, "1", "1", size));
        add_sample(&processes, run_processes(b, path, size, "&"));
        add_sample(&one_by_one, run_processes(b, path, size, ";"));
        add_sample(&one_doing_two, run_contexts(b, path, "1", "2", size));
        add_sample(&startup, run_contexts(b, path, "1", "0", size));
    }
    unlink(path);
    free(path);
    add_row(SECTION, "processors of this machine", (double)sysconf(_SC_NPROCESSORS_ONLN), "");
    add_row(SECTION, "one context that does nothing but import numpy", median(&startup), "s");
    add_row(SECTION, "two contexts at once", median(&both), "s");
    add_row(SECTION, "one context, run twice", median(&one_twice), "s");
    add_row(SECTION, "one context doing twice the work", median(&one_doing_two), "s");
    add_row(SECTION, "two processes at once against one after the other, the machine's limit",
            median(&one_by_one) / median(&processes), "x");
    add_claim(SECTION, "two at once against one run twice", median(&one_twice) / median(&both), "x",
              false, 1.9);
    add_row(SECTION, "two at once against one doing twice the work",
            median(&one_doing_two) / median(&both), "x");
}
