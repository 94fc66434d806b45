int api_count = 1;

int api_call(int value)
{
    return value + api_count;
}
