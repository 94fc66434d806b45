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

void exti__signals_each_parked(bool (*hand)(siginfo_t *info, uint64_t begun))
{
    for (size_t i = 0; i < PLACES; i++)
        if (places[i].state == FULL && take(&places[i], FULL))
            places[i].state = hand(&places[i].info, places[i].begun) ? FREE : FULL;
}

void exti__signals_forget_parked(void)
{
    for (size_t i = 0; i < PLACES; i++)
        places[i].state = FREE;
}
