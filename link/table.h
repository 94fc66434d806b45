/* The records of links, and where they are by host object and by native.
 *
 * link/ is a library of its own; of other rooms it uses base/ alone. */
#ifndef LINK_TABLE_H
#define LINK_TABLE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <extisolate/link.h>

/* What a record is. */
#define LINK_USED 1u
#define LINK_HOST_FIRST 2u
#define LINK_IS_LIGHT 4u
#define LINK_YOUNG 8u   /* on the list of young ones */
#define LINK_MARKER 16u /* a native that ends, and the host's word for nothing */
#define LINK_DEAD 32u   /* no link any more: a native that waits to be taken */
#define LINK_STRONG 64u
#define LINK_REPLACED 128u /* the native has another proxy, and leads to that */
#define LINK_LOOSE 256u    /* adds nothing to its native's count */
#define LINK_GROUP 9       /* from this bit on: the group whose references the host repeats */
#define LINK_FLAGS ((1u << LINK_GROUP) - 1)

#define NO_LINK UINT32_MAX
#define NOT_LISTED (UINT32_MAX - 1)

struct link {
    exti_host_word host;
    void *native;
    uint32_t state;
    /* On the list that it is on: of unused, young, strong or dead ones, of those that a sweep ends,
     * or of those that are said to have died. */
    uint32_t next;
};

/* Open addressing.  A slot is 0, or a deleted one, or has the number of a link in its lower bits
 * and above them as much of its hash as there is room for, so that hardly a link is looked at but
 * the right one. */
struct link_index {
    uint32_t *slots;
    uint32_t capacity;
    uint32_t used; /* slots that are not 0 */
    uint32_t room; /* how many may be used before slots are made anew */
    unsigned bits; /* of a slot, for the number */
    bool stale;    /* to be made anew before anything is looked up */
};

struct link_table {
    pthread_mutex_t moving; /* for threads without the caller's lock: guards where records are */
    struct link *links;
    uint32_t capacity;
    uint32_t end;  /* those from here on were never used */
    uint32_t live; /* links and markers */
    uint32_t unused;
    struct link_index by_host; /* of links that were made host first */
    struct link_index by_native;
};

void exti__link_table_begin(struct link_table *t);
void exti__link_table_free(struct link_table *t);

/* Room for one link more; `room` and `capacity` say when it is needed.  False: without memory. */
bool exti__link_make_records(struct link_table *t);
bool exti__link_make_slots(const struct link_table *t, struct link_index *x);

/* The object has moved.  Cannot fail. */
void exti__link_moved(struct link_table *t, uint32_t i, exti_host_word host);
/* Many will: between the two their words are written into the records, so many links end, and
 * nothing is looked up. */
void exti__link_moves_begin(struct link_table *t, uint32_t ending);
void exti__link_moves_end(struct link_table *t);

size_t exti__link_table_memory(const struct link_table *t);

#endif
