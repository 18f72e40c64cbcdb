/* Writes a machine file. */
#define _GNU_SOURCE
#include "tools/bench.h"

#include "peal_config.h"

#include <string.h>
#include <sys/utsname.h>
#include <time.h>

/* "model name : AMD EPYC" of /proc/cpuinfo; other systems name their processor elsewhere. */
static void read_processor(char *text, size_t bytes)
{
    char line[256];
    FILE *file = fopen("/proc/cpuinfo", "r");
    snprintf(text, bytes, "unknown processor");
    while (file && fgets(line, sizeof(line), file)) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) || !colon)
            continue;
        line[strcspn(line, "\n")] = 0;
        snprintf(text, bytes, "%s", colon + 2);
        break;
    }
    if (file)
        fclose(file);
}

static void print_origin(FILE *out, const peal_machine_times *times, const bench_origin *origin)
{
    char processor[200], date[32];
    struct utsname system;
    time_t now = time(NULL);
    struct tm local;
    localtime_r(&now, &local);
    strftime(date, sizeof(date), "%Y-%m-%d", &local);
    read_processor(processor, sizeof(processor));
    uname(&system);
    fprintf(out, "# %s, %s %s", processor, system.sysname, system.release);
    if (*origin->device)
        fprintf(out, "; %s", origin->device);
    fprintf(out, "\n# Measured %s by peal %s:", date, PEAL_VERSION);
    for (int i = 0; i < origin->options->word_count; i++)
        fprintf(out, " %s", i ? origin->options->words[i] : "peal");
    if (origin->rounds)
        fprintf(out, "\n# (fastest of %d rounds). ", origin->rounds);
    else
        fprintf(out, "\n# (all but kernels from %s). ", origin->options->machine);
    fputs("Seconds, and bytes a second.\n", out);
    fprintf(out, "machine: 1\n%snodes: %d\ndevices: %d\n",
            times->accelerator ? "accelerator: true\n" : "", times->nodes ? times->nodes : 1,
            times->devices);
}

/* "launch_s: 1.2e-06"; what is 0 is left out. */
static const char *print_time(FILE *out, const char *before, const char *name, double value)
{
    if (value <= 0)
        return before;
    fprintf(out, "%s%s: %.3g", before, name, value);
    return ", ";
}

/* Within braces a comma ends a name: that of an instance, smooth(2,3), is quoted. */
static void print_kernel(FILE *out, const peal_kernel_times *k)
{
    const char *before = "";
    const char *quote = strchr(k->task, ',') ? "\"" : "";
    fprintf(out, "%s%s%s: {", quote, k->task, quote);
    before = print_time(out, before, "fixed_s", k->fixed_s);
    before = print_time(out, before, "per_point_s", k->per_point_s);
    before = print_time(out, before, "per_byte_s", k->per_byte_s);
    print_time(out, before, "launch_s", k->launch_s);
    fputs("}", out);
}

/* Those of a mode, a line each. */
static void print_kernels_of(FILE *out, const char *before, peal_mode mode,
                             const peal_machine_times *times)
{
    bool any = false;
    for (int i = 0; i < times->kernel_count; i++) {
        if (!times->kernel[i].of_mode || times->kernel[i].mode != mode)
            continue;
        if (any)
            fputs(",\n              ", out);
        else
            fprintf(out, "%s%skernels: {", before, *before ? "\n    " : "");
        print_kernel(out, &times->kernel[i]);
        any = true;
    }
    fputs(any ? "}" : "", out);
}

static void print_mode(FILE *out, peal_mode mode, const peal_machine_times *times)
{
    const peal_mode_times *t = &times->mode[mode];
    const char *before = "";
    fprintf(out, "  %s: {", peal_mode_name(mode));
    before = print_time(out, before, "launch_s", t->launch_s);
    before = print_time(out, before, "post_s", t->post_s);
    before = print_time(out, before, "kernel_s", t->kernel_s);
    before = print_time(out, before, "copy_s", t->copy_s);
    before = print_time(out, before, "write_s", t->write_s);
    before = print_time(out, before, "wait_s", t->wait_s);
    before = print_time(out, before, "synchronize_s", t->synchronize_s);
    before = print_time(out, before, "stretch", t->stretch);
    if (t->apart)
        fprintf(out, "%sapart: true", before);
    print_kernels_of(out, t->apart ? ", " : before, mode, times);
    fputs("}\n", out);
}

void bench_print_machine(FILE *out, const peal_machine_times *times, const bench_origin *origin)
{
    static const char *const shares[] = {"none", "device", "node"};
    const char *before;
    print_origin(out, times, origin);
    fputs("modes:\n", out);
    for (int i = 0; i < PEAL_MODE_COUNT; i++)
        if (times->mode[i].given)
            print_mode(out, (peal_mode)i, times);
    fputs("kernels:\n", out);
    for (int i = 0; i < times->kernel_count; i++) {
        if (times->kernel[i].of_mode)
            continue;
        fputs("  ", out);
        print_kernel(out, &times->kernel[i]);
        fputs("\n", out);
    }
    fputs("links:\n", out);
    for (int i = 0; i < PEAL_LINK_COUNT; i++) {
        const peal_link_times *link = &times->link[i];
        if (!link->given)
            continue;
        fprintf(out, "  %s: {", peal_link_name((peal_link_class)i));
        before = print_time(out, "", "latency_s", link->latency_s);
        print_time(out, before, "bytes_per_s", link->bytes_per_s);
        if (link->shared)
            fprintf(out, ", shared: %s", shares[link->shared]);
        fputs("}\n", out);
    }
}
