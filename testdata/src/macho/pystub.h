/* A miniature libpython for extension modules. */
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
extern int Py_Modules;       /* number of initialised modules */

int PyModule_Create(const char *name); /* returns Py_Modules */
int Py_Twice(int n);

/* Gives the addresses of the above as the library sees them, in this order; NULL past the end. */
const void *Py_Address(int which);

int PyOptional_There(void);  /* for weak imports */
int PyOptional_Absent(void); /* defined nowhere */

#ifdef __cplusplus
}
#endif
#endif
