#include "loader/track/living_threads.h"

#include "loader/track/context_threads.h"
#include "loader/track/initialiser_threads.h"

size_t exti__living_threads_report(const struct exti_ctx *ctx, exti_report_fn report, void *user)
{
    size_t n = exti__ctx_threads_report(ctx, report, user);

    return n + exti__initialiser_threads_report(ctx, report, user);
}
