/* A small shared object with every structure that a rewrite reads, for the fuzzing corpus. */
int Py_one(void);
int Py_two(void);
extern int Py_three(int);
int Py_data = 3;
static int (*const volatile table[])(void) = {Py_one, Py_two};
#ifdef DATA
int many[2000] = {1};
int *const volatile pointers[] = {many, &Py_data};
#endif
#ifdef TLS
__thread int counter = 5;
#endif

int Py_one(void)
{
    return 1;
}

int Py_two(void)
{
    return Py_three(table[0]()) + Py_data;
}

#ifdef VERSIONED
int answer_1(void);
int answer_2(void);
__asm__(".symver answer_1,answer@ST_1");
__asm__(".symver answer_2,answer@@ST_2");

int answer_1(void)
{
    return 1;
}

int answer_2(void)
{
    return 2;
}
#endif

#ifdef UNIQUE
__asm__(".type Py_data, @gnu_unique_object");
#endif
