/* What libpython is to extension modules, in miniature. */
#ifndef PYSTUB_H
#define PYSTUB_H

#ifdef __cplusplus
extern "C" {
#endif

struct py_type {
    const char *name;
    struct py_type *meta;
    int (*call)(int);
};

extern struct py_type PyType_Type;
extern int _Py_Table[20000]; /* large, so that an addend to its address can be large */
extern int Py_Modules;       /* that were initialised */

int PyModule_Create(const char *name); /* gives Py_Modules */
int Py_Twice(int n);

/* Its own view of the above, in this order; NULL past the end. */
const void *Py_Address(int which);

int PyOptional_There(void);  /* for weak imports */
int PyOptional_Absent(void); /* defined nowhere */

#ifdef __cplusplus
}
#endif
#endif
