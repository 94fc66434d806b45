// A toy extension with C++ threads.
#include <semaphore.h>

#include <cstring>
#include <system_error>
#include <thread>

#include "toy.h"

namespace {
sem_t go;
std::thread worker;
int ended;

struct object {
    int value = 1;
    ~object() { ended += value; }
};
thread_local object per_thread;

struct at_load {
    at_load()
    {
        toy_get();
        sem_init(&go, 0, 0);
    }
} loaded;
}

extern "C" {

int threads_start(void)
{
    try {
        worker = std::thread([](int *done) { sem_wait(&go), ++*done; }, &ended);
    } catch (const std::system_error &e) {
        return e.code().value();
    }
    return 0;
}

int threads_release(void)
{
    return sem_post(&go);
}

int threads_join(void)
{
    worker.join();
    return 0;
}

int threads_ended(void)
{
    return ended;
}

int threads_visit(int *value)
{
    *value = ++per_thread.value;
    return 0;
}
}
