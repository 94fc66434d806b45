/* A thread of its own paints the bar, so that it appears even while one long file is processed. */
#include "cli/output/progress.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "cli/os/path.h"
#include "cli/os/system.h"

#define BAR_WIDTH 24
#define NAME_WIDTH 30

struct cli_progress {
    pthread_t painter;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    const char *what;
    size_t done, total, tick;
    char name[NAME_WIDTH + 1]; /* ASCII only, so that bytes are columns */
    bool painted, hidden, ended;
};

static void erase(struct cli_progress *p)
{
    if (p->painted)
        fputs("\r\033[K", stderr);
    p->painted = false;
}

static void paint(struct cli_progress *p)
{
    char bar[BAR_WIDTH + 1];
    size_t full = p->total != 0 ? p->done * BAR_WIDTH / p->total : 0;

    for (size_t i = 0; i < BAR_WIDTH; i++)
        bar[i] = i < full ? '#' : '.';
    if (p->total == 0)
        bar[p->tick % BAR_WIDTH] = '#';
    bar[BAR_WIDTH] = '\0';
    fprintf(stderr, "\r\033[K%s [%s]", p->what, bar);
    if (p->total != 0)
        fprintf(stderr, " %zu/%zu", p->done, p->total);
    fprintf(stderr, " %s", p->name);
    fflush(stderr);
    p->painted = true;
    p->tick++;
}

static void *painter(void *user)
{
    struct cli_progress *p = user;
    struct timespec next;

    clock_gettime(CLOCK_REALTIME, &next);
    next.tv_sec += 1;
    pthread_mutex_lock(&p->lock);
    while (!p->ended) {
        if (pthread_cond_timedwait(&p->changed, &p->lock, &next) != ETIMEDOUT)
            continue;
        if (!p->hidden)
            paint(p);
        next.tv_nsec += 100000000;
        if (next.tv_nsec >= 1000000000) {
            next.tv_sec++;
            next.tv_nsec -= 1000000000;
        }
    }
    erase(p);
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

struct cli_progress *cli_progress_start(const char *what, size_t total)
{
    struct cli_progress *p = cli_is_terminal(stderr) ? calloc(1, sizeof *p) : NULL;

    if (p == NULL)
        return NULL;
    p->what = what;
    p->total = total;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->changed, NULL);
    if (pthread_create(&p->painter, NULL, painter, p) != 0) {
        free(p);
        return NULL;
    }
    return p;
}

void cli_progress_step(struct cli_progress *p, size_t done, const char *name)
{
    if (p == NULL)
        return;
    if (*cli_base_name(name) != '\0')
        name = cli_base_name(name);
    pthread_mutex_lock(&p->lock);
    p->done = done;
    size_t n = 0;
    for (; n < NAME_WIDTH && name[n] != '\0'; n++)
        p->name[n] = name[n] > 0x1f && name[n] < 0x7f ? name[n] : '?';
    p->name[n] = '\0';
    pthread_mutex_unlock(&p->lock);
}

void cli_progress_hide(struct cli_progress *p)
{
    if (p == NULL)
        return;
    pthread_mutex_lock(&p->lock);
    erase(p);
    fflush(stderr);
    p->hidden = true;
    pthread_mutex_unlock(&p->lock);
}

void cli_progress_show(struct cli_progress *p)
{
    if (p == NULL)
        return;
    pthread_mutex_lock(&p->lock);
    p->hidden = false;
    pthread_mutex_unlock(&p->lock);
}

void cli_progress_end(struct cli_progress *p)
{
    if (p == NULL)
        return;
    pthread_mutex_lock(&p->lock);
    p->ended = true;
    pthread_cond_signal(&p->changed);
    pthread_mutex_unlock(&p->lock);
    pthread_join(p->painter, NULL);
    fflush(stderr);
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->lock);
    free(p);
}
