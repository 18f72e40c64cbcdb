/* Whether what was measured can be a machine's times. On a busy machine the fastest of few rounds
 * may be of another load than the next case's: what takes more then seems to take less. Such times
 * are not written: a file with zeros predicts nonsense and looks like any other. */
#include "runtime/measure/measure.h"
#include "runtime/session/session.h"

#include <math.h>
#include <string.h>

/* Of a step, whose samples last 1 ms or longer: the clock, which counts ns, tells no less. */
static const double resolution_s = 1e-11;

static const char *const case_name[PEAL_MEASURE_CASES] = {
    "one task",
    "five tasks",
    "a task and a copy",
    "a task and a message",
    "a task of a long row",
    "a task and a message of a long row",
    "a task within the cache",
    "a task outside of caches",
    "a task and a message that nobody awaits"};

static const char hint[] =
    "other work disturbs the measurement: end it, or say --rounds 1000, or chrt -f 10 peal bench";

typedef struct judgement {
    const peal_measure_table *table;
    peal_diagnostics *diagnostics;
    peal_status status;
} judgement;

static bool is_time(double seconds)
{
    return isfinite(seconds) && seconds >= resolution_s;
}

static void refuse(judgement *j, int mode, peal_measure_case more, peal_measure_case less)
{
    const double *step_s = j->table->step_s[mode];
    j->status =
        peal_report(j->diagnostics, PEAL_E_MEASURED_NO_TIME, PEAL_NO_SOURCE, hint,
                    "mode %s: %s took %.4g us a step, %s %.4g us: the difference is no time",
                    peal_mode_name((peal_mode)mode), case_name[more], step_s[more] * 1e6,
                    case_name[less], step_s[less] * 1e6);
}

static void expect_more(judgement *j, int mode, peal_measure_case more, peal_measure_case less)
{
    const double *step_s = j->table->step_s[mode];
    if (!is_time(step_s[more] - step_s[less]))
        refuse(j, mode, more, less);
}

static void judge_mode(judgement *j, int mode)
{
    static const struct {
        peal_measure_case more, less;
    } pairs[] = {{PEAL_MEASURE_TASKS, PEAL_MEASURE_TASK},
                 {PEAL_MEASURE_LOCAL, PEAL_MEASURE_TASK},
                 {PEAL_MEASURE_MESSAGE, PEAL_MEASURE_LOCAL},
                 {PEAL_MEASURE_SMALL, PEAL_MEASURE_TASK},
                 {PEAL_MEASURE_LARGE, PEAL_MEASURE_SMALL},
                 {PEAL_MEASURE_WIDE_MESSAGE, PEAL_MEASURE_WIDE}};
    const bool accelerator = j->table->accelerator;
    for (int i = 0; i < PEAL_MEASURE_CASES; i++) {
        double seconds = j->table->step_s[mode][i];
        if (i == PEAL_MEASURE_UNAWAITED && !accelerator)
            continue;
        if (!is_time(seconds))
            j->status = peal_report(j->diagnostics, PEAL_E_MEASURED_NO_TIME, PEAL_NO_SOURCE, hint,
                                    "mode %s: %s took %.4g us a step, which is no time",
                                    peal_mode_name((peal_mode)mode), case_name[i], seconds * 1e6);
    }
    if (j->status)
        return;
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        bool by_receiver = pairs[i].more == PEAL_MEASURE_MESSAGE; /* there it copies */
        bool hidden = pairs[i].more == PEAL_MEASURE_LOCAL && mode == PEAL_MODE_STREAM; /* fit.c */
        if (!accelerator || (!by_receiver && !hidden))
            expect_more(j, mode, pairs[i].more, pairs[i].less);
    }
}

static void expect_time(judgement *j, const char *of, const char *name, double value)
{
    if (isfinite(value) && value > 0)
        return;
    j->status = peal_report(j->diagnostics, PEAL_E_MEASURED_NO_TIME, PEAL_NO_SOURCE, hint,
                            "`%s` of %s came out as %g", name, of, value);
}

/* What the differences of several cases gave; on GPUs some of them are 0, where nobody waits. */
static void judge_times(judgement *j, const peal_machine_times *times)
{
    for (int mode = 0; mode < PEAL_MODE_COUNT; mode++) {
        const peal_mode_times *t = &times->mode[mode];
        const char *name = peal_mode_name((peal_mode)mode);
        if (!t->given)
            continue;
        expect_time(j, name, "kernel_s", t->kernel_s);
        if (j->table->accelerator)
            continue;
        expect_time(j, name, "copy_s", t->copy_s);
        expect_time(j, name, "write_s", t->write_s);
        expect_time(j, name, "wait_s", t->wait_s);
    }
    for (int i = 0; i < PEAL_LINK_COUNT; i++) {
        const peal_link_times *link = &times->link[i];
        if (link->given)
            expect_time(j, peal_link_name((peal_link_class)i), "bytes_per_s", link->bytes_per_s);
        bool none = j->table->accelerator && link->latency_s == 0; /* its wait takes no more */
        if (link->given && i != PEAL_LINK_DEVICE && !none)
            expect_time(j, peal_link_name((peal_link_class)i), "latency_s", link->latency_s);
    }
}

peal_status peal_measure_judge(const peal_measure_table *table, const peal_machine_times *times,
                               peal_diagnostics *diagnostics)
{
    judgement j = {.table = table, .diagnostics = diagnostics};
    for (int mode = 0; mode < PEAL_MODE_COUNT; mode++)
        if (table->given[mode])
            judge_mode(&j, mode);
    if (!table->accelerator && !is_time(table->line_s))
        j.status =
            peal_report(diagnostics, PEAL_E_MEASURED_NO_TIME, PEAL_NO_SOURCE,
                        "a machine file needs two cores that this process may use",
                        "a cache line took %.4g us from one core to another", table->line_s * 1e6);
    if (!j.status)
        judge_times(&j, times);
    return j.status;
}

/* What messages, folds and verdicts add to a step ("send u", "until") is a difference between two
 * times, and may be nothing. */
static bool is_task(const char *name)
{
    return !strchr(name, ' ') && strcmp(name, "until") != 0;
}

peal_status peal_measure_judge_kernels(const peal_machine_times *times,
                                       peal_diagnostics *diagnostics)
{
    peal_status status = PEAL_STATUS_OK;
    for (int i = 0; i < times->kernel_count; i++) {
        const peal_kernel_times *k = &times->kernel[i];
        double sum = k->fixed_s + k->per_point_s + k->per_byte_s + k->launch_s;
        if (!isfinite(sum) || sum < 0 || (sum == 0 && is_task(k->task)))
            status = peal_report(diagnostics, PEAL_E_MEASURED_NO_TIME, PEAL_NO_SOURCE, hint,
                                 "kernel `%s` came out as taking no time at all", k->task);
    }
    return status;
}
