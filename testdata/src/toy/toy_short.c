/* An API whose one function has a name of one letter. */
int t(void);

static int count;

int t(void)
{
    return ++count;
}
