/* What signals do in each context.  A process has one action for each signal; here each context
 * has its own, as if it were a process, and the process's action is made from those of all: the
 * dispatcher (signal_dispatch.h) where one of them wants a function called.  What the program
 * itself has set is kept, and put back when no context needs the signal any more.  ELF systems.
 * Any thread, signal handlers included. */
#ifndef LOADER_TRACK_SIGNAL_TABLE_H
#define LOADER_TRACK_SIGNAL_TABLE_H

#include "loader/track/context.h"

#if !defined(__APPLE__) && !defined(_WIN32)

#include <signal.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "loader/track/signal_cell.h"

#define EXTI_SIGNAL_MAX 64 /* of the kernel */
#define EXTI_SIGNAL_CONTEXTS 16384

/* The actions of a context.  One is never freed, so that a handler may hold it; it is used again
 * for another context. */
struct exti_signals;

typedef void (*exti_signal_dispatcher)(int sig, siginfo_t *info, void *context);

/* Installs the fork handlers; to be called before any copy is loaded, whose own may come here. */
void exti__signals_survive_forks(exti_signal_dispatcher dispatcher);

/* The actions of the context, which are made from the process's at the first call.  NULL without
 * memory or where the context shares the process's. */
struct exti_signals *exti__signals_of(struct exti_ctx *ctx);

/* Before the context's code is unmapped: takes its handlers away, and waits a second at most for
 * those that run.  False if one still does. */
bool exti__signals_end(struct exti_ctx *ctx);
/* Takes them away, and waits for none: the context has ended, but not its threads. */
void exti__signals_drop(struct exti_ctx *ctx);

/* sigaction(2) for the context. */
void exti__signal_set(struct exti_signals *s, int sig, const struct sigaction *act,
                      struct sigaction *old);

/* What the context has asked of siginterrupt(3), which its signal(2) goes by from then on. */
void exti__signal_interrupt(struct exti_signals *s, int sig, bool interrupts);
bool exti__signal_interrupts(const struct exti_signals *s, int sig);

/* What exti__signal_put_back needs to know. */
struct exti_signal_former {
    struct sigaction action;
    pid_t thread;
    bool waited, set;
};

/* Sets the action until it is put back. */
void exti__signal_replace(struct exti_signals *s, int sig, const struct sigaction *act,
                          struct exti_signal_former *former);
void exti__signal_put_back(struct exti_signals *s, int sig,
                           const struct exti_signal_former *former);

/* The calling thread takes these signals of its context's by waiting for them. */
void exti__signal_wait_for(struct exti_signals *s, const sigset_t *set);

/* A timer may send the context the signal, which is not to end the other contexts. */
void exti__signal_expect(struct exti_signals *s, int sig);

/* A system(3) begins (1) or has ended (-1), in which the context ignores SIGINT and SIGQUIT. */
void exti__signals_count_command(struct exti_ctx *ctx, struct exti_signals *s, int by);

/* ---- for handlers; no lock ---- */

/* Whether the calling process is the one that the table is of: a vfork child has its parent's
 * memory, but actions of its own. */
bool exti__signals_are_ours(void);

/* In a vfork child of the context: ignores what the context ignores, and nothing else that it has
 * set, as execve(2) keeps that. */
void exti__signals_give_child(const struct exti_signals *s);

/* The process has been forked on a thread of the context, and is the context's alone. */
bool exti__signals_are_childs(void);

/* The nth of the process, in no order; NULL: there is none of this number. */
struct exti_signals *exti__signals_at(unsigned n);
unsigned exti__signals_count(void); /* all are below */
unsigned exti__signals_number(const struct exti_signals *s);

/* Keeps the context from being unmapped until exti__signals_leave.  NULL: it is being closed, or
 * was. */
struct exti_ctx *exti__signals_enter(struct exti_signals *s);
void exti__signals_leave(struct exti_signals *s);

struct exti_signal_action exti__signal_action(const struct exti_signals *s, int sig);

/* What the program has set. */
struct exti_signal_action exti__signal_of_program(int sig);
void exti__signal_reset_program(int sig);

/* The signals for which the process's action is the dispatcher: bit sig - 1. */
uint64_t exti__signals_dispatched(void);

#else

static inline struct exti_signals *exti__signals_of(struct exti_ctx *ctx)
{
    (void)ctx;
    return NULL;
}
static inline bool exti__signals_end(struct exti_ctx *ctx)
{
    (void)ctx;
    return true;
}

#endif
#endif
