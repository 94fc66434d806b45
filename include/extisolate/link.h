/* extisolate/link.h - links between the objects of two heaps.
 *
 * The public interface of libextisolate-link, which needs no other library and knows no language.
 * All names start with exti_ or EXTI_.
 *
 * A host is a heap with a collector that traces: a Java virtual machine, a JavaScript engine, a
 * Lisp.  A native object, here "a native", is one that lives by a count of references, such as a
 * PyObject.  A link says that the two are one object, seen from two sides, and lasts until the
 * host's side is dead.  Each link adds a fixed number, the base, to the native's count.  What the
 * count has beyond it are the references of native code.
 *
 * Two ways to link.  Host first: the object is the host's, and the native is a shell that was made
 * for it.  While native code refers to the shell, the host's object is kept.  Native first: the
 * object is the native, and the host has a proxy.  While the host refers to the proxy, the native
 * is kept, by the base; references of native code do not keep the proxy.
 *
 * Nothing is ended in the middle of a collection: natives that are dead wait to be taken by
 * exti_links_next_dead.
 *
 * Threads.  A table belongs to a lock, under which the counts of its natives change, such as a GIL.
 * All functions are called with that lock held, but where they say that any thread may call. */
#ifndef EXTISOLATE_LINK_H
#define EXTISOLATE_LINK_H

#include <extisolate.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A host's word for one of its objects: an address, or whatever tells it from others.  0: none. */
typedef uintptr_t exti_host_word;

struct exti_links; /* a table of links between one host and the natives of one lock */

/* ---- natives --------------------------------------------------------------------------------- */

/* Called for each native that another one refers to.  Non-zero ends the traversal. */
typedef int (*exti_native_visit)(void *native, void *arg);

/* How the table reaches natives.  `user` is struct exti_links_opts.user. */
struct exti_natives {
    int64_t (*count)(void *user, const void *native);
    /* Changes the count and ends nothing, whatever it becomes. */
    void (*add)(void *user, void *native, int64_t n);
    /* Frees a light shell, which refers to no other native.  NULL: there are none. */
    void (*free_light)(void *user, void *native);
    /* Visits each native that this one has counted references to, once for each, as tp_traverse
     * does; returns what `visit` returned last.  One that leaves some out is safe, but then
     * circles that go through those are not found.  NULL: no circles are looked for. */
    int (*traverse)(void *user, void *native, exti_native_visit visit, void *arg);
    /* For natives without a collector of their own: how a dead circle is taken apart, in the order
     * of PEP 442.  All NULL: natives have one, which finds it as soon as its links have ended. */
    void (*clear_weak)(void *user, void *native); /* weak references to it give nothing any more */
    /* Runs its finaliser, unless that has been done; it may revive natives. */
    void (*finalise)(void *user, void *native);
    void (*clear)(void *user, void *native);   /* drops what it refers to */
    void (*release)(void *user, void *native); /* takes 1 from the count and ends it at 0 */
};

/* ---- hosts ----------------------------------------------------------------------------------- */

/* A host is of one of two kinds, or of both.  One that marks lets the table take part in its
 * collections. */
struct exti_marking {
    /* Whether the collection keeps the object, as far as is known by now.  It writes where the
     * object is from now on, if it has moved. */
    int (*survives)(void *user, exti_host_word *object);
    /* The collection keeps the object and all that it reaches. */
    void (*keep)(void *user, exti_host_word object);
};

/* One that toggles collects by itself, at any time and on any thread.  It refers to each linked
 * object by a reference that is weak or strong, as the table asks, and tells the table of those
 * that have died.  Words of live objects differ and stay the same. */
struct exti_toggling {
    /* From now on the reference keeps the object, which the caller of the table has in its hands.
     * Non-zero: it cannot. */
    int (*strengthen)(void *user, exti_host_word object);
    /* From now on it does not. */
    void (*weaken)(void *user, exti_host_word object);
    /* For circles through both heaps, which no host can see that does not know what natives refer
     * to.  `from` is one of its objects or hubs; what it is made to refer to, it keeps alive while
     * it is alive itself, until it forgets all of that.  Non-zero, or 0 for a hub: it cannot. */
    int (*refer)(void *user, exti_host_word from, exti_host_word to);
    /* A new object to which `from` refers.  It stands for a native without a link. */
    exti_host_word (*hub)(void *user, exti_host_word from);
    void (*forget)(void *user, exti_host_word from);
};

/* ---- tables ---------------------------------------------------------------------------------- */

struct exti_links_opts {
    size_t size;
    struct exti_natives natives;
    /* One of these two.  With both it is a host that toggles, and may at times stop all that
     * happens and mark: by exti_links_trace and exti_links_sweep with EXTI_LINKS_ALL.  It settles
     * before, and says of no object that it has died until the sweep has returned. */
    struct exti_marking marking;
    struct exti_toggling toggling;
    /* Called once at the end of a collection that has left dead natives, so that the host takes
     * them some time later; it must not take them itself.  May be NULL. */
    void (*some_dead)(void *user);
    /* Asks the host to collect, now or later.  May be NULL. */
    void (*please_collect)(void *user);
    void *user;
    /* What a link adds to a native's count.  0: 1, an ordinary reference.  A host that owns the
     * natives' headers may have a large one, for native code that treats small counts in a special
     * way.  On CPython 3.12 and later 2^31 and more means that the object is immortal. */
    int64_t base;
    /* What a light link adds: larger than any count without it.  0: there are no light links. */
    int64_t light;
    /* How many natives one collection follows references of, at most; 0: all that links lead to.
     * What it does not come to counts as alive, and is where the next one begins.  So a circle of
     * more is not found. */
    size_t budget;
    /* After how many bytes more of exti_links_weigh the host is asked to collect.  0: never. */
    int64_t pressure;
};

/* exti_links_close *out.  EXTI_E_ARG: an option is wrong. */
EXTI_API int exti_links_open(struct exti_links **out, const struct exti_links_opts *opts,
                             struct exti_error *err);

/* Ends all links, takes their base from the counts and forgets dead natives, which stay at a count
 * of 1.  NULL ok. */
EXTI_API void exti_links_close(struct exti_links *links);

struct exti_links_info {
    size_t size;    /* set by the caller; members past it are not written */
    size_t links;   /* that there are */
    size_t young;   /* of them, those that no collection has seen */
    size_t dead;    /* natives that exti_links_next_dead would give */
    size_t strong;  /* links by which a host that toggles keeps objects */
    size_t circles; /* natives that exti_links_clear_circles would look at */
    size_t memory;  /* bytes of heap that the table holds */
};
EXTI_API int exti_links_info(const struct exti_links *links, struct exti_links_info *out);

/* ---- links ----------------------------------------------------------------------------------- */

/* The shell is freed by exti_natives.free_light, as no code has to run at its end. */
#define EXTI_LINK_LIGHT 1u
/* The link adds nothing to the shell's count: it ends by its count, as any native, and whoever ends
 * it calls exti_link_end.  For hosts without a heap of their own, such as another interpreter. */
#define EXTI_LINK_LOOSE 2u

/* Links an object of the host to a shell that was made for it.  The caller has added the base to
 * the shell's count, `light` for a light link, or nothing for a loose one.  Neither may have a
 * link.  EXTI_E_ARG, or EXTI_E_NOMEM. */
EXTI_API int exti_link_host(struct exti_links *links, exti_host_word object, void *shell,
                            uint32_t flags);
/* Links a native to a proxy that the host has made for it.  The caller has added the base to the
 * native's count.  If a host that toggles finds that the proxy is no longer there, it links the
 * native to a new one, although it may not have told of the other yet. */
EXTI_API int exti_link_native(struct exti_links *links, exti_host_word proxy, void *native);

/* Ends the link of a loose shell, if it has one.  A host that only marks has no loose ones. */
EXTI_API void exti_link_end(struct exti_links *links, const void *shell);

/* The shell of an object of the host; NULL for a proxy, and for what has no link. */
EXTI_API void *exti_link_from_host(const struct exti_links *links, exti_host_word object);
/* The host's object of a shell, or the proxy of a native; 0 for what has no link. */
EXTI_API exti_host_word exti_link_to_host(const struct exti_links *links, const void *native);

/* ---- the collections of a host that marks ---------------------------------------------------- */

enum exti_links_part {
    EXTI_LINKS_YOUNG = 0, /* those made since the last collection: the cost is theirs alone */
    EXTI_LINKS_ALL = 1
};

/* Keeps what native code refers to.  The host calls it after it has marked from its own roots,
 * marks from what it was told to keep, and calls again until the result, how many it was told of,
 * is 0.
 *
 * In a collection of all, with exti_natives.traverse, references of natives that are themselves
 * only held by the host count for as much as those by which the host holds them.  So a circle that
 * goes through both heaps is dead when nothing outside refers to it.  Without memory for this it
 * lives until the next collection. */
EXTI_API size_t exti_links_trace(struct exti_links *links, enum exti_links_part part);

/* A host may say so when it has marked an object or proxy, between traces: long chains that change
 * heaps often are then marked in one go, where otherwise each change takes a round. */
EXTI_API void exti_link_marked(struct exti_links *links, const void *native);

/* After the last trace: ends the links whose object does not survive and takes the base from the
 * natives' counts.  The others are told where their objects are now, and are old.  What it calls of
 * the host's looks nothing up in the table. */
EXTI_API void exti_links_sweep(struct exti_links *links, enum exti_links_part part);

/* ---- the border of a host that toggles ------------------------------------------------------- */

/* A link begins weak.  The host calls this before it gives a native to native code, while it has
 * the object or proxy: the object of a shell is kept from now on.  Also for what native code gets
 * by a weak reference of its own.  EXTI_E_HOOK: exti_toggling.strengthen could not. */
EXTI_API int exti_link_hand_out(struct exti_links *links, const void *native);

/* Looks at some of the shells that were handed out, `most` at most, or all (0): where native code
 * has no reference left, the object is not kept any more.  Returns how many those are.  The host
 * calls it when native code returns to it, or every so often: an inlined Py_DECREF tells nobody. */
EXTI_API size_t exti_links_scan(struct exti_links *links, size_t most);

/* Has the host decide on circles that go through both heaps: where only natives that the host alone
 * holds refer to a shell, its object is not kept any more by the table, but by what stands for
 * those natives in the host (exti_toggling.refer).  That is undone when one of them is handed out.
 * Who gets a native by a weak reference to it was not handed it out: where natives have such
 * references, the host hands out what they give (or calls this again, for a native without a link),
 * or exti_natives.count is one more for what they refer to while this runs; else the objects behind
 * it may die early.
 *
 * Returns how many objects are not kept any more.  Called every so often, such as when there are
 * twice as many links as collections of the host's have left, and followed by such a collection. */
EXTI_API size_t exti_links_weaken_circles(struct exti_links *links);

/* The number of a native's link, by which the host says that its object has died.  UINT32_MAX: it
 * has none. */
EXTI_API uint32_t exti_link_number(const struct exti_links *links, const void *native);

/* The object has died, or the proxy.  Any thread may call, with or without the lock, and touches
 * nothing but the table.  Once for each link; exti_links_settle gives the number to others. */
EXTI_API void exti_link_died(struct exti_links *links, uint32_t number);

/* Ends the links that exti_link_died was called for, and takes the base from their natives' counts.
 * Returns how many.  Needs memory only where natives have no collector of their own
 * (exti_natives.clear): without it none ends, and they wait for the next call. */
EXTI_API size_t exti_links_settle(struct exti_links *links);

/* ---- what the host does not see -------------------------------------------------------------- */

/* Natives that the host keeps alive hold so many bytes more, or fewer: the host knows its own
 * objects alone, and would not collect for their sake. */
EXTI_API void exti_links_weigh(struct exti_links *links, int64_t bytes);

/* What is to be done when the border is crossed, which costs next to nothing mostly: settles what
 * has died, and asks for a collection if natives have become heavy (exti_links_opts.pressure). */
EXTI_API void exti_links_poll(struct exti_links *links);

/* ---- dead natives ---------------------------------------------------------------------------- */

/* Takes a native that was dead when its link ended.  Its count is 1, the caller's reference, by
 * whose release it ends.  NULL: there is none. */
EXTI_API void *exti_links_next_dead(struct exti_links *links);

/* Takes apart the dead circles of natives without a collector of their own: clears all weak
 * references, calls all finalisers, and, unless these have revived it, clears and releases each
 * native.  Returns how many those were.  Without memory some wait for the next call, which calls
 * finalise for them again. */
EXTI_API size_t exti_links_clear_circles(struct exti_links *links);

/* While the native that was taken ends, exti_link_to_host gives `marker`, which is the host's word
 * for nothing that collections should look at, until exti_link_ended.  EXTI_E_ARG: it is linked. */
EXTI_API int exti_link_ending(struct exti_links *links, exti_host_word marker, void *native);
EXTI_API void exti_link_ended(struct exti_links *links, const void *native);

#ifdef __cplusplus
}
#endif
#endif
