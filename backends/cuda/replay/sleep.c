/* How long the host sleeps while replays are under way: most of the time that they will take, so
 * that the application has the processor, and no longer, since the end of a run is seen late by the
 * rest of a sleep. */
#include "backends/cuda/drive/run.h"
#include "backends/cuda/lower/emit.h"
#include "backends/cuda/replay/replay.h"
#include "base/clock.h"

/* Sleeps end some 60 us late. */
static const double late = 6e-5, shortest = 1e-5;

/* ---- no rate is known ---- */

static const double longest_nap = 2e-4;

/* A part of the time so far; or half of what is left, if steps take as long as those that were
 * counted. What the replays have waited for is in that time, so no nap is long. */
double peal_cuda_replay_nap(double past, int64_t steps, int64_t counted, double counted_at)
{
    double nap = past / 16 + shortest;

    if (counted > 0) {
        double left = (counted_at * (double)steps / (double)counted - past) / 2 - late;
        nap = left < nap ? left : nap;
    }
    nap = nap < longest_nap ? nap : longest_nap;
    return nap < shortest ? 0 : nap;
}

/* In a plan's first replays: naps until they are nearly done; only yields at first. */
static bool nap_until_nearly_done(peal_cuda_plan *plan, uint64_t last, CUevent done)
{
    const peal_cuda_graphs *graphs = plan->graphs;
    int64_t steps = peal_cuda_replay_end_of(graphs, last) - graphs->first, counted = 0;
    double counted_at = 0, before = 0; /* the look before: what is new has been counted since */
    CUresult state;

    while ((state = plan->driver->cuEventQuery_(done)) == CUDA_ERROR_NOT_READY) {
        int64_t seen = peal_cuda_replay_counted(plan) - graphs->first;
        double past = peal_clock_s() - graphs->began;
        if (seen > counted) {
            counted = seen;
            counted_at = before;
        }
        double nap = peal_cuda_replay_nap(past, steps, counted, counted_at);
        before = past;
        if (nap <= 0)
            return true;
        peal_backoff once = {.yields = past < longest_nap, .sleep_ns = (int64_t)(nap * 1e9)};
        if (!peal_cuda_rows_out(plan, false) || !peal_cuda_poll_once(plan, &once))
            return false;
    }
    return !state || peal_cuda_report_driver_error(plan, state, NULL, "a replay");
}

/* ---- a rate is known ---- */

/* The least time that steps up to `end` will still take, in seconds, if the device goes on as fast
 * as it ever did. `seen` steps have been counted; it may have done `report` more. */
static double time_left(const peal_cuda_graphs *graphs, int64_t seen, int64_t end, double now)
{
    double by_count = (double)(end - seen - graphs->report) / graphs->rate;
    double by_clock = (double)(end - graphs->first) / graphs->rate - (now - graphs->began);

    return by_count > by_clock ? by_count : by_clock;
}

/* The time is estimated from the greatest rate of steps that was measured: lower rates include time
 * in which the device waited for the host. */
bool peal_cuda_replay_sleep(peal_cuda_plan *plan, uint64_t last)
{
    static const double most = 0.9, longest = 0.02;
    peal_cuda_graphs *graphs = plan->graphs;
    CUevent done = graphs->done[(last - 1) % REPLAYS_AHEAD];

    if (graphs->stops)
        return true;
    if (graphs->rate <= 0)
        return nap_until_nearly_done(plan, last, done);
    int64_t seen = peal_cuda_replay_counted(plan);
    int64_t before = seen > graphs->first ? seen : graphs->first;
    double begin = peal_clock_s();
    double left =
        most * time_left(graphs, before, peal_cuda_replay_end_of(graphs, last), begin) - late;

    left = left < longest ? left : longest;
    if (left < shortest || plan->driver->cuEventQuery_(done) == CUDA_SUCCESS)
        return true;
    peal_clock_sleep((int64_t)(left * 1e9));
    if (plan->driver->cuEventQuery_(done) == CUDA_SUCCESS)
        graphs->rate *= 2; /* who has slept too long does not know how much faster the device is */
    int64_t steps = peal_cuda_replay_counted(plan) - before - graphs->report;
    double rate = (double)steps / (peal_clock_s() - begin);
    graphs->rate = rate > graphs->rate ? rate : graphs->rate;
    return true;
}
