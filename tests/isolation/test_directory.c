/* The directory and the umask of the threads that contexts have for themselves. */
#define _GNU_SOURCE
#include "tests/support/exti_test.h"

#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/prctl.h>

#include "tests/isolation/directory_toy.h"

/* ---- the context's own threads ---- */

ISO_CASE(each_context_has_a_directory_and_a_umask_of_its_own)
{
    struct mover m[2];
    struct thread first[2], early[2], late[2];
    struct errand at[2] = {{&m[0], "a", 077, NULL}, {&m[1], "b", 002, NULL}};
    struct errand home = {NULL, "home", 022, NULL};

    begin();
    for (int i = 0; i < 2; i++) {
        m[i] = mover(0);
        home.m = &m[i];
        start(&first[i], NULL);
        tell(&first[i], own, &at[i]);
        tell(&first[i], look, &home);
        at[i].child = &early[i];
        tell(&first[i], start_child, &at[i]);
    }
    for (int i = 0; i < 2; i++)
        tell(&first[i], move, &at[i]);
    for (int i = 0; i < 2; i++) {
        at[i].child = &late[i];
        tell(&first[i], start_child, &at[i]);
        tell(&first[i], look, &at[i]);
        tell(&early[i], look, &at[i]);
        tell(&late[i], look, &at[i]);
        tell(&first[i], ask_children, &at[i]);
        tell(&late[i], ask_children, &at[i]);
    }
    /* What any of its threads does, all see. */
    at[0].folder = "c";
    at[0].mask = 027;
    tell(&late[0], move, &at[0]);
    tell(&first[0], look, &at[0]);
    tell(&early[0], look, &at[0]);
    tell(&first[1], look, &at[1]);
    want(is_at("home"));
    want_int(mask_here(), 022);
    for (int i = 0; i < 2; i++) {
        end(&early[i]);
        end(&late[i]);
        end(&first[i]);
        iso_close_ctx(m[i].ctx);
    }
}

ISO_CASE(control_threads_of_contexts_that_share_are_all_moved)
{
    struct mover m[2];
    struct thread first[2];
    struct errand at[2] = {{&m[0], "a", 077, NULL}, {&m[1], "b", 002, NULL}};

    begin();
    for (int i = 0; i < 2; i++) {
        m[i] = mover(EXTI_CTX_PROCESS_DIRECTORY);
        start(&first[i], NULL);
        tell(&first[i], own, &at[i]);
    }
    for (int i = 0; i < 2; i++)
        tell(&first[i], move, &at[i]);
    tell(&first[0], look, &at[1]);
    want(is_at("b"));
    want_int(mask_here(), 002);
    for (int i = 0; i < 2; i++) {
        end(&first[i]);
        iso_close_ctx(m[i].ctx);
    }
}

ISO_CASE(a_child_has_its_threads_directory_and_moves_alone)
{
    struct mover m;
    int status;
    pid_t pid;

    begin();
    m = mover(EXTI_CTX_ENTER_DIRECTORY);
    exti_ctx_enter(m.ctx);
    want_int(m.go(in_tmp("a")), 0);
    pid = fork();
    if (pid == 0) {
        want(is_at("a"));
        want_int(m.go("../b"), 0);
        m.mask(007);
        want(is_at("b"));
        _exit(0);
    }
    want_int(waitpid(pid, &status, 0), pid);
    want_int(status, 0);
    want(is_at("a"));
    want_int(m.vfork_go("../b"), 0);
    want(is_at("a"));
    exti_ctx_leave(NULL);
    exti_ctx_enter(m.ctx);
    want(is_at("a"));
    want_int(mask_here(), 022);
    exti_ctx_leave(NULL);
    iso_close_ctx(m.ctx);
}

/* ---- /proc/self ---- */

#define ALL_WAYS ((1 << 18) - 1)
#define OF_LINKS (128 | 256 | 2048 | 4096)

static void look_through_proc(void *arg)
{
    struct errand *e = arg;
    const char *name = iso_text("in-%s", e->folder);
    const char *own = iso_text("/proc/%d/cwd", (int)getpid());

    want_int(e->m->through("/proc/self/cwd", name), ALL_WAYS);
    want_int(e->m->through(own, name), ALL_WAYS);
    want_int(e->m->through("/proc/thread-self/cwd", name), ALL_WAYS);
    /* Which is no link. */
    want_int(e->m->through(iso_text("/proc/self/root%s", in_tmp(e->folder)), name),
             ALL_WAYS & ~OF_LINKS);
    want_int(e->m->go("/proc/self/cwd"), 0);
    want(is_at(e->folder));
    /* Those of other processes are left, as are all other paths. */
    want_int(e->m->through("/proc/self/cwdx", name), 0);
    want_int(e->m->through("/proc/1/cwdx", name), 0);
    want_int(e->m->through(iso_text("/proc/%d/cwd", (int)getpid() * 10), name), 0);
    want_int(e->m->through("/proc/self", "status") & 1, 1);
    want_int(e->m->through("/proc", "version") & 1, 1);
    want_int(e->m->through("", name), 0);
}

ISO_CASE(its_own_is_found_below_proc)
{
    struct mover m;
    struct thread first;
    struct errand at = {&m, "a", 022, NULL};

    begin();
    m = mover(0);
    start(&first, NULL);
    tell(&first, own, &at);
    tell(&first, move, &at);
    tell(&first, look_through_proc, &at);
    end(&first);
    iso_close_ctx(m.ctx);
}

static void look_through_leaders(void *arg)
{
    struct errand *e = arg;

    want_int(e->m->through("/proc/self/cwd", "in-home") & 1, 1);
    want_int(e->m->through("/proc/self/cwd", "in-a"), 0);
}

ISO_CASE(control_there_is_the_first_threads)
{
    struct mover m;
    struct thread first;
    struct errand at = {&m, "a", 022, NULL};

    begin();
    m = mover(EXTI_CTX_PROCESS_DIRECTORY);
    start(&first, NULL);
    want_int(unshare(CLONE_FS), 0); /* of this one, which is the first */
    tell(&first, move, &at);
    tell(&first, look_through_leaders, &at);
    end(&first);
    iso_close_ctx(m.ctx);
}

/* ---- where the system refuses ---- */

static void refuse_unshare(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_unshare, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {ARRAY_SIZE(code), code};

    want_int(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    want_int(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

ISO_CASE(a_system_that_refuses_leaves_the_processs)
{
    struct mover m;
    struct thread started;
    struct errand at = {&m, "a", 077, &started};
    struct exti_error err = {0};

    begin();
    refuse_unshare();
    m = mover(EXTI_CTX_ENTER_DIRECTORY);
    want_exti(exti_ctx_own_thread(m.ctx, 0, &err), EXTI_E_IO, &err);
    want_int(err.os_error, EPERM);
    want_text(err.message, "unshare");
    exti_ctx_enter(m.ctx);
    move(&at);
    start_child(&at);
    exti_ctx_leave(NULL);
    look(&at);
    tell(&started, look, &at);
    end(&started);
    iso_close_ctx(m.ctx);
}

/* Who forbids it while it visits is taken home all the same. */
ISO_CASE(a_visitor_that_gives_up_unshare_leaves)
{
    struct mover m;

    begin();
    m = mover(EXTI_CTX_ENTER_DIRECTORY);
    exti_ctx_enter(m.ctx);
    want_int(m.go(in_tmp("a")), 0);
    refuse_unshare();
    exti_ctx_leave(NULL);
    want(is_at("home"));
    iso_close_ctx(m.ctx);
}

/* Root may search any folder by these. */
static void drop_capabilities(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}};

    want_int(syscall(SYS_capset, &header, none), 0);
}

ISO_CASE(a_directory_that_cannot_be_searched_is_left_to_the_process)
{
    struct mover m;
    struct exti_error err = {0};

    begin();
    want_int(mkdir(in_tmp("locked"), 0700), 0);
    want_int(chdir(in_tmp("locked")), 0);
    want_int(chmod(in_tmp("locked"), 0), 0);
    drop_capabilities();
    m = mover(EXTI_CTX_ENTER_DIRECTORY);
    want_exti(exti_ctx_own_thread(m.ctx, 0, &err), EXTI_E_IO, &err);
    want_int(err.os_error, EACCES);
    exti_ctx_enter(m.ctx);
    want_int(m.go(in_tmp("home")), 0);
    exti_ctx_leave(NULL);
    want(is_at("home"));
    iso_close_ctx(m.ctx);
    want_int(chmod(in_tmp("locked"), 0700), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_context_has_a_directory_and_a_umask_of_its_own),
        cmocka_unit_test(control_threads_of_contexts_that_share_are_all_moved),
        cmocka_unit_test(a_child_has_its_threads_directory_and_moves_alone),
        cmocka_unit_test(its_own_is_found_below_proc),
        cmocka_unit_test(control_there_is_the_first_threads),
        cmocka_unit_test(a_system_that_refuses_leaves_the_processs),
        cmocka_unit_test(a_visitor_that_gives_up_unshare_leaves),
        cmocka_unit_test(a_directory_that_cannot_be_searched_is_left_to_the_process),
    };

    return cmocka_run_group_tests_name("isolation/directory", tests, NULL, NULL);
}
