#include "loader/track/parked_signals.h"

#include <stdatomic.h>
#include <stddef.h>

#define PLACES 256

enum { FREE, TAKEN, FULL };

static struct place {
    atomic_int state;
    siginfo_t info;
    uint64_t begun;
} places[PLACES];

static bool take(struct place *p, int state)
{
    return atomic_compare_exchange_strong(&p->state, &state, TAKEN);
}

bool exti__signal_park(const siginfo_t *info, uint64_t begun)
{
    for (size_t i = 0; i < PLACES; i++) {
        if (!take(&places[i], FREE))
            continue;
        places[i].info = *info;
        places[i].begun = begun;
        places[i].state = FULL;
        return true;
    }
    return false;
}

/* False: a start has ended while the place was taken, and its thread may have passed by. */
static bool hand_one(struct place *p, bool (*hand)(siginfo_t *info, uint64_t begun),
                     bool (*starts)(uint64_t begun))
{
    const uint64_t number = p->begun;

    if (hand(&p->info, number)) {
        p->state = FREE;
        return true;
    }
    p->state = FULL;
    return starts(number);
}

void exti__signals_each_parked(bool (*hand)(siginfo_t *info, uint64_t begun),
                               bool (*starts)(uint64_t begun))
{
    for (size_t i = 0; i < PLACES; i++)
        while (places[i].state == FULL && take(&places[i], FULL) &&
               !hand_one(&places[i], hand, starts))
            continue;
}

void exti__signals_forget_parked(void)
{
    for (size_t i = 0; i < PLACES; i++)
        places[i].state = FREE;
}
