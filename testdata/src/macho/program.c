/* A main program that contains the API, as python3 may; it is linked with pystub.c. */
int main(void);

int main(void)
{
    return 0;
}
