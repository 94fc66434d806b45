#define _GNU_SOURCE /* syscall */
#include "runtime/pace.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <time.h>
#ifdef __linux__
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "runtime/system.h"

#ifdef __APPLE__

void pyrt_gate_init(struct pyrt_gate *g)
{
    (void)g;
}

void pyrt_gate_open(struct pyrt_gate *g)
{
    (void)g;
}

void pyrt_gate_pass(struct pyrt_gate *g)
{
    (void)g;
}

void pyrt_gate_come(struct pyrt_gate *g)
{
    (void)g;
}

void pyrt_gate_await(struct pyrt_gate *g)
{
    (void)g;
}

void pyrt_pace_enter(void)
{
}

void pyrt_pace_leave(void)
{
}

void pyrt_pace_tell(void)
{
}

void pyrt_pace_await(uint64_t (*number)(void *user, int i), void *user, int count, int most)
{
    (void)number;
    (void)user;
    (void)count;
    (void)most;
}

#else

#define MILLISECOND 1000000
#define INTERVAL (4 * MILLISECOND)
/* A thread that waits for a lock or a page goes on in a moment. */
#define LOOKS 2
/* By then most programs have imported what they need, or will go on for long. */
#define PATIENCE ((uint64_t)500 * MILLISECOND)

static _Atomic uint32_t ends; /* how many programs have ended */
static uint32_t noticed;      /* how many of these a wait has noticed */
static sem_t entries;         /* how many may enter */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_semaphores(void)
{
    sem_init(&entries, 0, (unsigned)pyrt_processors());
}

static void take(sem_t *s)
{
    while (sem_wait(s) != 0 && errno == EINTR)
        continue;
}

void pyrt_gate_init(struct pyrt_gate *g)
{
    pthread_once(&once, make_semaphores);
    sem_init(&g->come, 0, 0);
    sem_init(&g->open, 0, 0);
}

void pyrt_gate_pass(struct pyrt_gate *g)
{
    pyrt_gate_come(g);
    take(&g->open);
}

void pyrt_gate_come(struct pyrt_gate *g)
{
    sem_post(&g->come);
}

void pyrt_gate_open(struct pyrt_gate *g)
{
    sem_post(&g->open);
}

void pyrt_gate_await(struct pyrt_gate *g)
{
    take(&g->come);
}

void pyrt_pace_enter(void)
{
    take(&entries);
}

void pyrt_pace_leave(void)
{
    sem_post(&entries);
}

/* Up to `most`. */
static int count_running(uint64_t (*number)(void *user, int i), void *user, int count, int most)
{
    int running = 0;

    for (int i = count - 1; i >= 0 && running < most; i--) {
        const uint64_t n = number(user, i);

        running += n == 0 || (n != PYRT_NO_THREAD && pyrt_thread_runs(n));
    }
    return running;
}

void pyrt_pace_tell(void)
{
    const int error = errno;

    ends++;
    syscall(SYS_futex, &ends, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    errno = error;
}

/* Whether a program ends within nanoseconds.  futex(2) measures it by a clock that nobody sets, as
 * sem_timedwait does not, and wakes nobody meanwhile: those who run would have to make way. */
static bool await_end(uint64_t span)
{
    const struct timespec interval = {0, (long)span};

    syscall(SYS_futex, &ends, FUTEX_WAIT_PRIVATE, noticed, &interval, NULL, 0);
    if (ends == noticed)
        return false;
    noticed++;
    return true;
}

void pyrt_pace_await(uint64_t (*number)(void *user, int i), void *user, int count, int most)
{
    const uint64_t begin = pyrt_clock();
    uint64_t waited = 0;

    /* The longer they have run, the less often they are looked at, as each look reads a file of
     * /proc for each of them. */
    for (int looks = 0; looks < LOOKS && waited < PATIENCE; waited = pyrt_clock() - begin) {
        const bool ended = await_end(INTERVAL + (looks ? 0 : waited / 4));

        looks = count_running(number, user, count, most) < most ? looks + 1 : 0;
        if (ended && looks)
            break;
    }
}

#endif
