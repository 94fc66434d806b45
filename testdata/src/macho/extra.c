/* -DN=5 gives extra_5, which gives 5. */
#define PASTE(a, b) a##b
#define NAME(a, b) PASTE(a, b)

int NAME(extra_, N)(void);

int NAME(extra_, N)(void)
{
    return N;
}
