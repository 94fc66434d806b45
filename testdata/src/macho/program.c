/* A main program with the API built in, as python3 may be; pystub.c is linked with it. */
int main(void);

int main(void)
{
    return 0;
}
