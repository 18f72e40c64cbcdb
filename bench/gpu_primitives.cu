/* What the parts cost of which peal's schedules on GPUs are made: flags, memory operations, graph
 * nodes, kernels, copies; and what can release a stream that waits. One process, one or two GPUs.
 *
 * Every row is measured once a round, in turns; the table shows medians over the rounds. A thread
 * watches: a row that hangs is named, what was measured so far is printed, and the program ends. */
#include "gpu/primitives.cuh"

#include <pthread.h>
#include <stdarg.h>
#include <unistd.h>

enum { ROWS = 256, HANG_S = 30, EXIT_USAGE = 2, EXIT_DEADLINE = 6 };

static row rows[ROWS];
static int row_count;
static const row *volatile current; /* being measured, or NULL */
static volatile double current_since;

typedef struct options {
    int rounds, gpus;
    const char *json, *only;
    bool table, rescue, list;
} options;

row *row_add(int gpus, const char *unit, row_measure *measure, double expected, const char *format,
             ...)
{
    va_list arguments;
    if (row_count == ROWS) {
        fprintf(stderr, "more rows than the table holds\n");
        abort();
    }
    row *r = &rows[row_count++];
    va_start(arguments, format);
    vsnprintf(r->name, sizeof(r->name), format, arguments);
    va_end(arguments);
    r->gpus = gpus;
    r->unit = unit;
    r->measure = measure;
    r->expected = expected;
    return r;
}

/* Median, smallest and largest of a row's values. */
static void summarise(const row *r, double result[3])
{
    double sorted[ROW_ROUNDS];
    memcpy(sorted, r->value, (size_t)r->value_count * sizeof(double));
    result[0] = gpu_median(sorted, r->value_count);
    result[1] = sorted[0];
    result[2] = sorted[r->value_count - 1];
}

static void print_table(void)
{
    printf("%-62s %5s %10s %10s %10s %10s\n", "what", "unit", "median", "min", "max",
           "seen before");
    for (int i = 0; i < row_count; i++) {
        const row *r = &rows[i];
        double value[3];
        if (r->value_count == 0) {
            printf("%-62s %5s %10s\n", r->name, r->unit,
                   r->failed                ? "FAILED"
                   : r->gpus > device_count ? "needs 2 GPUs"
                                            : "not measured");
            continue;
        }
        summarise(r, value);
        printf("%-62s %5s %10.2f %10.2f %10.2f", r->name, r->unit, value[0], value[1], value[2]);
        if (r->expected > 0) {
            printf(" %10.2f", r->expected);
        }
        printf("\n");
    }
    fflush(stdout);
}

static void write_json(FILE *json)
{
    for (int i = 0; i < row_count; i++) {
        const row *r = &rows[i];
        double value[3];
        if (r->value_count == 0) {
            continue;
        }
        summarise(r, value);
        fprintf(json,
                "{\"row\": \"%s\", \"unit\": \"%s\", \"median\": %.4f, \"min\": %.4f, "
                "\"max\": %.4f, \"rounds\": %d}\n",
                r->name, r->unit, value[0], value[1], value[2], r->value_count);
    }
    fflush(json);
}

/* Ends the program when one row takes too long. */
static void *watch(void *unused)
{
    for (;;) {
        usleep(200000);
        const row *r = current;
        if (r && gpu_now_us() - current_since > HANG_S * 1e6) {
            print_table();
            fprintf(stderr, "no end after %d s: %s\n", HANG_S, r->name);
            _exit(EXIT_DEADLINE);
        }
    }
    return unused;
}

static void measure_row(row *r)
{
    if (r->gpus > device_count || r->failed) {
        return;
    }
    double value = NAN;
    current_since = gpu_now_us();
    current = r;
    gpu_throws = true;
    try {
        GPU(cudaSetDevice(0));
        value = r->measure(r);
    } catch (const gpu_failure &) {
        gpu_recover();
    }
    gpu_throws = false;
    current = NULL;
    if (isnan(value)) {
        r->failed = true;
        fprintf(stderr, "failed: %s\n", r->name);
    } else {
        r->value[r->value_count++] = value;
    }
}

static void measure_all(const options *o)
{
    pthread_t watcher;
    if (pthread_create(&watcher, NULL, watch, NULL) != 0) {
        fprintf(stderr, "no thread to watch for hangs\n");
        exit(GPU_EXIT);
    }
    for (int round = 0; round < o->rounds; round++) {
        for (int i = 0; i < row_count; i++) {
            if (!o->only || strstr(rows[i].name, o->only)) {
                measure_row(&rows[i]);
            }
        }
        fprintf(stderr, "round %d of %d\n", round + 1, o->rounds);
    }
}

static void print_machine(FILE *out)
{
    cudaDeviceProp property;
    int version = 0, peer = 0;
    GPU(cudaGetDeviceProperties(&property, 0));
    GPU(cudaDriverGetVersion(&version));
    if (device_count > 1) {
        GPU(cudaDeviceCanAccessPeer(&peer, 0, 1));
    }
    fprintf(out,
            "{\"gpu\": \"%s\", \"gpus\": %d, \"peer_access\": %d, \"sms\": %d, "
            "\"cuda_driver\": \"%d.%d\"}\n",
            property.name, device_count, peer, property.multiProcessorCount, version / 1000,
            version % 1000 / 10);
}

static int usage(void)
{
    fprintf(stderr, "usage: gpu_primitives [--rounds N] [--gpus 1|2] [--json FILE] [--only TEXT] "
                    "[--no-table] [--no-rescue] [--list]\n");
    return EXIT_USAGE;
}

static bool parse(int argc, char **argv, options *o)
{
    for (int i = 1; i < argc; i++) {
        const bool more = i + 1 < argc;
        if (!strcmp(argv[i], "--rounds") && more) {
            o->rounds = atoi(argv[++i]);
        } else if (!strcmp(argv[i], "--gpus") && more) {
            o->gpus = atoi(argv[++i]);
        } else if (!strcmp(argv[i], "--json") && more) {
            o->json = argv[++i];
        } else if (!strcmp(argv[i], "--only") && more) {
            o->only = argv[++i];
        } else if (!strcmp(argv[i], "--no-table")) {
            o->table = false;
        } else if (!strcmp(argv[i], "--no-rescue")) {
            o->rescue = false;
        } else if (!strcmp(argv[i], "--list")) {
            o->list = true;
        } else {
            return false;
        }
    }
    return o->rounds >= 1 && o->rounds <= ROW_ROUNDS && o->gpus >= 1 && o->gpus <= 2;
}

/* The table, then the checks of rescues, which run in processes of their own. */
static int run(const options *o)
{
    FILE *json = o->json ? fopen(o->json, "w") : NULL;
    if (o->json && !json) {
        perror(o->json);
        return EXIT_USAGE;
    }
    if (!gpu_open_driver()) {
        return GPU_EXIT;
    }
    gpu_open(o->gpus);
    const int gpus = device_count;
    print_machine(stdout);
    if (json) {
        print_machine(json);
    }
    if (o->table) {
        measure_all(o);
        print_table();
    }
    if (json) {
        write_json(json);
    }
    gpu_close();
    if (o->rescue) {
        rescue_run(json, gpus);
    }
    if (json) {
        fclose(json);
    }
    return 0;
}

int main(int argc, char **argv)
{
    options o = {9, 2, NULL, NULL, true, true, false};
    setenv("CUDA_MODULE_LOADING", "EAGER", 1); /* loading behind a closed gate would hang */
    if (argc > 1 && !strcmp(argv[1], "--child")) {
        return rescue_child(argc - 2, argv + 2);
    }
    if (!parse(argc, argv, &o)) {
        return usage();
    }
    rows_add_flags();
    rows_add_launches();
    rows_add_copies();
    rows_add_puts();
    rows_add_tiles();
    if (o.list) {
        for (int i = 0; i < row_count; i++) {
            printf("%s [%s]\n", rows[i].name, rows[i].unit);
        }
        return 0;
    }
    return run(&o);
}
