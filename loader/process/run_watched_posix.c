/* What leaves a frame without returning to it: exceptions and the end of a thread unwind the stack
 * and call the personality routine of each frame (Itanium C++ ABI: Exception Handling); longjmp
 * does not, nor does musl at the end of a thread. */
#include "loader/process/run_watched.h"

#include <pthread.h>
#include <stdbool.h>
#include <unwind.h>

/* What the C library itself has run when a frame is left in these ways.  glibc exports, but does
 * not declare it. */
#if defined(__GLIBC__)
#define FRAME_RECORD struct _pthread_cleanup_buffer
#elif defined(__linux__)
#define FRAME_RECORD struct __ptcb
#endif

struct watch {
    void (*left)(const void *user);
    const void *user;
    struct watch *outer; /* the thread's */
#ifdef FRAME_RECORD
    FRAME_RECORD record;
#endif
};

static _Thread_local struct watch *innermost;

static void leave_watch(void *watch)
{
    const struct watch *w = watch;

    innermost = w->outer;
    w->left(w->user);
}

#ifdef FRAME_RECORD
extern void _pthread_cleanup_push(FRAME_RECORD *record, void (*left)(void *), void *watch);
extern void _pthread_cleanup_pop(FRAME_RECORD *record, int run);
#define PUSH_RECORD(w) _pthread_cleanup_push(&(w)->record, leave_watch, w)
#define POP_RECORD(w, run) _pthread_cleanup_pop(&(w)->record, run)
#else
#define PUSH_RECORD(w) (void)(w)
#define POP_RECORD(w, run) ((run) ? leave_watch(w) : (void)(w))
#endif

/* The C compiler's own personality routine is in libgcc_s, which processes may have of different
 * versions: this library must not bring it into them. */
#if defined(__ELF__) && !defined(__ARM_EABI__)
__attribute__((used)) _Unwind_Reason_Code
exti__watch_personality(int version, _Unwind_Action actions, _Unwind_Exception_Class class,
                        struct _Unwind_Exception *exception, struct _Unwind_Context *context);

/* The frame is that of the innermost watch: those of inner ones have been unwound. */
_Unwind_Reason_Code exti__watch_personality(int version, _Unwind_Action actions,
                                            _Unwind_Exception_Class class,
                                            struct _Unwind_Exception *exception,
                                            struct _Unwind_Context *context)
{
    (void)version, (void)class, (void)exception, (void)context;
    if ((actions & _UA_CLEANUP_PHASE) && innermost)
        POP_RECORD(innermost, 1);
    return _URC_CONTINUE_UNWIND;
}

/* DW_EH_PE_pcrel | DW_EH_PE_sdata4 */
#define WATCH_THIS_FRAME __asm__ volatile(".cfi_personality 0x1b, exti__watch_personality")
#else
#define WATCH_THIS_FRAME (void)0
#endif

/* glibc's longjmp finds the records that it passes by their addresses, which are to be the stack's:
 * the address sanitizer would put them elsewhere. */
__attribute__((noinline, no_sanitize("address"))) void
exti__run_watched(void (*run)(const void *arg), const void *arg, void (*left)(const void *user),
                  const void *user)
{
    struct watch w = {.left = left, .user = user, .outer = innermost};

    WATCH_THIS_FRAME;
    innermost = &w;
    PUSH_RECORD(&w);
    run(arg);
    POP_RECORD(&w, 0);
    innermost = w.outer;
}
