/* The toy API library: a miniature libpython for extension modules. */
#ifndef TOY_H
#define TOY_H

#ifdef __cplusplus
extern "C" {
#endif

struct toy_type {
    const char *name;
    struct toy_type *meta; /* as ob_type: an address in initialised data */
    int (*call)(void);
    int instances;
};

extern struct toy_type toy_type_type, toy_object_type;
extern int (*const toy_table[])(void); /* toy_next, toy_get */
extern int toy_count;
extern int toy_constructed; /* set by the library's constructor */

int toy_next(void); /* ++toy_count */
int toy_get(void);
int toy_next_by_call(void); /* toy_next through the library's own symbol table */
int *toy_count_seen(void);  /* &toy_count as the library itself sees it */
int *toy_tls_seen(void);    /* of the calling thread */
int toy_fast(void);         /* an indirect function (STT_GNU_IFUNC): 42 */

/* A registry through which extensions that use the same library can share values. */
void toy_register(const char *key, void *value);
void *toy_find(const char *key);

#ifdef __cplusplus
}
#endif
#endif
