/* Times of a machine from those of the cases: differences of two cases are what one more op takes.
 * The simulation's critical path through each case says which ops these are. */
#include "runtime/measure/measure.h"

#include <math.h>
#include <string.h>

typedef struct fit {
    const peal_measure_table *table;
    peal_machine_times *out;
    double per_byte_s, bytes_per_s;
} fit;

static double at_least_0(double value)
{
    return value > 0 ? value : 0;
}

/* What a case takes beyond another, in a mode; serial mode does what all ranks do in turn. */
static double more(const fit *f, int mode, peal_measure_case a, peal_measure_case b)
{
    double ranks = mode == PEAL_MODE_SERIAL ? 2 : 1;
    return at_least_0(f->table->step_s[mode][a] - f->table->step_s[mode][b]) / ranks;
}

static double cpu_more(const fit *f, int mode, peal_measure_case a, peal_measure_case b)
{
    return at_least_0(f->table->cpu_s[mode][a] - f->table->cpu_s[mode][b]);
}

/* One more task beside what it does with its bytes. */
static double task_s(const fit *f, int mode)
{
    peal_measure_size size = peal_measure_size_of(PEAL_MEASURE_TASK, f->table->accelerator);
    double each = more(f, mode, PEAL_MEASURE_TASKS, PEAL_MEASURE_TASK) / (PEAL_MEASURE_CHAIN - 1);
    return at_least_0(each - (double)size.bytes * f->per_byte_s);
}

/* What a size takes beyond a task of few points, and for how many bytes. */
static double larger(const fit *f, int mode, peal_measure_case which, double *bytes)
{
    bool accelerator = f->table->accelerator;
    *bytes = (double)(peal_measure_size_of(which, accelerator).bytes -
                      peal_measure_size_of(PEAL_MEASURE_TASK, accelerator).bytes);
    return more(f, mode, which, PEAL_MEASURE_TASK);
}

/* Cores: between one size and the other lie the speeds of the sizes between. GPUs: the large one
 * says what bytes take, and the small one what else there is. */
static void fit_kernels(fit *f)
{
    int mode = f->table->accelerator && f->table->given[PEAL_MODE_GRAPH] ? PEAL_MODE_GRAPH
                                                                         : PEAL_MODE_STREAM;
    double small_bytes, large_bytes, fixed_s = 0;
    double small_s = larger(f, mode, PEAL_MEASURE_SMALL, &small_bytes);
    double large_s = larger(f, mode, PEAL_MEASURE_LARGE, &large_bytes);
    if (f->table->accelerator) {
        f->per_byte_s = large_s > 0 ? large_s / large_bytes : 1e-12;
        fixed_s = at_least_0(small_s - small_bytes * f->per_byte_s);
    } else
        f->per_byte_s = sqrt((small_s > 0 ? small_s / small_bytes : 1e-12) *
                             (large_s > 0 ? large_s / large_bytes : 1e-12));
    f->out->kernel[0] =
        (peal_kernel_times){.task = "default", .fixed_s = fixed_s, .per_byte_s = f->per_byte_s};
    f->out->kernel_count = 1;
}

static void fit_rate(fit *f)
{
    int mode = f->table->given[PEAL_MODE_FUSED] ? PEAL_MODE_FUSED : PEAL_MODE_STREAM;
    double wide = more(f, mode, PEAL_MEASURE_WIDE_MESSAGE, PEAL_MEASURE_WIDE);
    double narrow = more(f, mode, PEAL_MEASURE_MESSAGE, PEAL_MEASURE_TASK);
    peal_measure_size size = peal_measure_size_of(PEAL_MEASURE_WIDE_MESSAGE, f->table->accelerator);
    double seconds = wide - narrow;
    f->bytes_per_s = seconds > 0 ? (double)size.message_bytes / seconds : 1e12;
}

/* A message is on the path with its copy, the write of its flag, the way and the wait; in serial
 * mode there is no way. Of what is left beside copy and way, write and wait have a half each. */
static void fit_message(const fit *f, int mode, double way_s)
{
    peal_mode_times *times = &f->out->mode[mode];
    double copy_s = more(f, mode, PEAL_MEASURE_LOCAL, PEAL_MEASURE_TASK);
    double message_s = more(f, mode, PEAL_MEASURE_MESSAGE, PEAL_MEASURE_TASK);
    double flags_s = at_least_0(message_s - copy_s - (mode == PEAL_MODE_SERIAL ? 0 : way_s));
    times->copy_s = copy_s;
    times->write_s = flags_s / 2;
    times->wait_s = flags_s / 2;
}

/* Cores: whoever does an op drives it. The way is a cache line's, unless messages are faster. */
static void fit_cores(fit *f)
{
    double way_s = f->table->line_s;
    for (int mode = PEAL_MODE_SYNC; mode < PEAL_MODE_COUNT; mode++) {
        double most = more(f, mode, PEAL_MEASURE_MESSAGE, PEAL_MEASURE_TASK) -
                      more(f, mode, PEAL_MEASURE_LOCAL, PEAL_MEASURE_TASK);
        if (f->table->given[mode] && way_s >= most)
            way_s = at_least_0(most) / 2; /* flags take time as well */
    }
    for (int mode = 0; mode < PEAL_MODE_COUNT; mode++) {
        if (!f->table->given[mode])
            continue;
        f->out->mode[mode].given = true;
        f->out->mode[mode].kernel_s = task_s(f, mode);
        fit_message(f, mode, way_s);
    }
    f->out->link[PEAL_LINK_HOST] =
        (peal_link_times){.given = true, .latency_s = way_s, .bytes_per_s = f->bytes_per_s};
}

/* What a message takes beside what is done for it: from the write to the end of the wait. */
static double awaited_s(const fit *f, int mode)
{
    return more(f, mode, PEAL_MEASURE_MESSAGE, PEAL_MEASURE_UNAWAITED);
}

/* The way is the shortest of all modes; what others take longer is their waiting. */
static double way_between_devices(const fit *f)
{
    double way_s = -1;
    for (int mode = PEAL_MODE_STREAM; mode < PEAL_MODE_COUNT && f->table->apart; mode++)
        if (f->table->given[mode] && (way_s < 0 || awaited_s(f, mode) < way_s))
            way_s = awaited_s(f, mode);
    return at_least_0(way_s);
}

/* In mode stream a copy goes with the task's launch, whose enqueueing may take longer than both: it
 * seems to take no time then, and takes what it does in a graph. */
static double device_copy_s(const fit *f, int mode)
{
    double seconds = more(f, mode, PEAL_MEASURE_LOCAL, PEAL_MEASURE_TASK);
    bool hidden = mode == PEAL_MODE_STREAM && seconds <= 0 && f->table->given[PEAL_MODE_GRAPH];
    return hidden ? more(f, PEAL_MODE_GRAPH, PEAL_MEASURE_LOCAL, PEAL_MEASURE_TASK) : seconds;
}

/* A GPU: the CPU's part is told apart by its own time. */
static void fit_device(fit *f)
{
    double launch_s = cpu_more(f, PEAL_MODE_STREAM, PEAL_MEASURE_TASKS, PEAL_MEASURE_TASK) /
                      (PEAL_MEASURE_CHAIN - 1);
    double kernel_s =
        task_s(f, f->table->given[PEAL_MODE_GRAPH] ? PEAL_MODE_GRAPH : PEAL_MODE_STREAM);
    double way_s = way_between_devices(f);
    for (int mode = 0; mode < PEAL_MODE_COUNT; mode++) {
        peal_mode_times *times = &f->out->mode[mode];
        if (!f->table->given[mode])
            continue;
        times->given = true;
        times->kernel_s = mode == PEAL_MODE_FUSED ? task_s(f, mode) : kernel_s;
        times->apart = mode > PEAL_MODE_SYNC;
        times->copy_s = device_copy_s(f, mode);
        times->write_s =
            at_least_0(more(f, mode, PEAL_MEASURE_UNAWAITED, PEAL_MEASURE_TASK) - times->copy_s);
        times->wait_s = at_least_0(awaited_s(f, mode) - (mode == PEAL_MODE_SERIAL ? 0 : way_s));
    }
    peal_mode_times *mode = f->out->mode;
    double large_s = more(f, PEAL_MODE_FUSED, PEAL_MEASURE_LARGE, PEAL_MEASURE_TASK);
    double usual_s = more(f, PEAL_MODE_GRAPH, PEAL_MEASURE_LARGE, PEAL_MEASURE_TASK);
    if (usual_s > 0 && large_s > usual_s)
        mode[PEAL_MODE_FUSED].stretch = large_s / usual_s;
    mode[PEAL_MODE_SYNC].launch_s = mode[PEAL_MODE_SERIAL].launch_s = launch_s;
    mode[PEAL_MODE_SYNC].synchronize_s =
        at_least_0(task_s(f, PEAL_MODE_SYNC) - launch_s - kernel_s);
    mode[PEAL_MODE_SERIAL].synchronize_s =
        at_least_0(task_s(f, PEAL_MODE_SERIAL) - launch_s - kernel_s);
    mode[PEAL_MODE_STREAM].launch_s = launch_s;
    mode[PEAL_MODE_STREAM].post_s =
        cpu_more(f, PEAL_MODE_STREAM, PEAL_MEASURE_MESSAGE, PEAL_MEASURE_TASK) / 3;
    mode[PEAL_MODE_GRAPH].launch_s = f->table->cpu_s[PEAL_MODE_GRAPH][PEAL_MEASURE_TASK];
    f->out->link[PEAL_LINK_DEVICE] =
        (peal_link_times){.given = true, .bytes_per_s = 1 / (2 * f->per_byte_s)};
    if (f->table->apart)
        f->out->link[PEAL_LINK_P2P] = (peal_link_times){.given = true,
                                                        .latency_s = way_s,
                                                        .bytes_per_s = f->bytes_per_s,
                                                        .shared = PEAL_SHARE_DEVICE};
}

void peal_measure_fit(const peal_measure_table *table, peal_machine_times *out)
{
    fit f = {.table = table, .out = out};
    *out = (peal_machine_times){.given = true, .accelerator = table->accelerator, .devices = 1};
    fit_kernels(&f);
    fit_rate(&f);
    if (table->accelerator)
        fit_device(&f);
    else
        fit_cores(&f);
}
