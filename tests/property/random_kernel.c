/* The tasks of a random graph as kernels: C that computes what random_mix does. A kernel's threads
 * share a tile's points, so partial results are theirs, and an element a tile depends on what is
 * read at the tile's first point only. */
#include "tests/property/random_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

peal_function random_function(const random_graph *g)
{
    return g->folder ? NULL : random_mix;
}

const char *random_kernel_name(const random_graph *g, const mix_task *t, char text[KERNEL_NAME])
{
    if (!g->folder)
        return NULL;
    snprintf(text, KERNEL_NAME, "mix%d", (int)(t - g->task));
    return text;
}

/* ---- text ---- */

static const char axes[3] = {'x', 'y', 'z'};

static int first_write(const mix_task *t)
{
    return t->read_count + t->update_count;
}

/* "PEAL_AT(v2, X, Y)" with the coordinates that `part` gives, such as "2 * x + dx". */
static void print_element(FILE *out, const mix_task *t, int view, const char *index,
                          const char *offset)
{
    const mix_view *m = &t->view[view];

    if (m->kind != VIEW_POINTS) {
        fprintf(out, "v%d[%s]", view, index);
        return;
    }
    fprintf(out,
            t->vector       ? "v%d["
            : m->components ? offset ? "PEAL_C(v%d, c, " : "PEAL_C(v%d, 0, "
                            : "PEAL_AT(v%d, ",
            view);
    for (int k = 0; k < t->axis_count; k++) {
        fprintf(out, m->scale == -2 ? "%s(%c - (%c & 1)) / 2" : "%s%d * %c", k ? ", " : "",
                m->scale == -2 ? axes[k] : m->scale, axes[k]);
        if (offset)
            fprintf(out, " + %s%c", offset, axes[k]);
    }
    fprintf(out, t->vector ? "]" : ")");
}

static void open_offsets(FILE *out, const mix_task *t, const mix_view *m, bool reads)
{
    for (int k = t->axis_count - 1; k >= 0; k--)
        fprintf(out, "for (int d%c = %d; d%c <= %d + none; d%c++) ", axes[k],
                reads ? -m->grow[k][0] : 0, axes[k], (reads ? m->grow[k][1] : 0) + (m->scale == 2),
                axes[k]);
    if (m->components)
        fprintf(out, "for (int c = 0; c < %d + none; c++) ", m->components);
    fprintf(out, "{\n");
}

static void print_arm(FILE *out, const mix_task *t, const mix_view *m)
{
    fprintf(out, "            int outside = 0");
    for (int k = 0; k < t->axis_count; k++)
        fprintf(out, " + (d%c < 0 || d%c > %d)", axes[k], axes[k], m->scale == 2);
    fprintf(out, ";\n            if (outside > 1)\n                continue;\n");
}

/* value += 0.37 * (i + 1) * the sum over the footprint around a point */
static void print_gather(FILE *out, const mix_task *t, int view)
{
    static const char *const weight[3] = {"0.25", "0.125", "0.0625"};
    const mix_view *m = &t->view[view];

    if (m->kind != VIEW_POINTS) {
        fprintf(out, "        sum = (double)v%d[0] + 0.5 * (double)v%d[1];\n", view, view);
    } else {
        fprintf(out, "        sum = 0;\n        ");
        open_offsets(out, t, m, true);
        if (m->star)
            print_arm(out, t, m);
        fprintf(out, "            sum += (1.0");
        for (int k = 0; k < t->axis_count; k++)
            fprintf(out, " + %s * d%c", weight[k], axes[k]);
        fprintf(out, "%s) * (double)", m->components ? " + 0.5 * c" : "");
        print_element(out, t, view, "0", "d");
        fprintf(out, ";\n        }\n");
    }
    fprintf(out, "        value += 0.37 * %d * sum;\n", view + 1);
}

static void print_stored(FILE *out, const mix_task *t, int view, const char *value)
{
    static const char *const form[] = {[PEAL_F64] = "folded(%s)",
                                       [PEAL_F32] = "(float)folded(%s)",
                                       [PEAL_I32] = "(int32_t)(folded(%s) * 1000.0)",
                                       [PEAL_I64] = "(int64_t)(folded(%s) * 100000.0)",
                                       [PEAL_U8] = "(uint8_t)(int32_t)(folded(%s) * 100.0)"};
    const char *at = strchr(form[t->view[view].type], '%');

    fprintf(out, " = %.*s%s%s;\n", (int)(at - form[t->view[view].type]), form[t->view[view].type],
            value, at + 2);
}

static void print_store(FILE *out, const mix_task *t, int view)
{
    static const char *const weight[3] = {"0.2", "0.3", "0.4"};
    const mix_view *m = &t->view[view];
    char value[160];

    if (m->kind != VIEW_POINTS)
        return;
    fprintf(out, "        ");
    open_offsets(out, t, m, false);
    int used = snprintf(value, sizeof(value), "value * (1.0 + 0.5 * %d)", view);
    for (int k = 0; k < t->axis_count; k++)
        used +=
            snprintf(value + used, sizeof(value) - (size_t)used, " + %s * d%c", weight[k], axes[k]);
    if (m->components)
        snprintf(value + used, sizeof(value) - (size_t)used, " + 0.7 * c");
    fprintf(out, "            ");
    print_element(out, t, view, "0", "d");
    print_stored(out, t, view, value);
    fprintf(out, "        }\n");
}

static void print_signature(FILE *out, const mix_task *t, int number)
{
    int writes = first_write(t), views = writes + t->write_count;

    fprintf(out, "\nPEAL_KERNEL(mix%d)(peal_tile t", number);
    for (int i = 0; i < views; i++)
        fprintf(out, ", %s%s(%s, v%d)",
                i < t->read_count ? "PEAL_READ"
                : i < writes      ? "PEAL_UPDATE"
                                  : "PEAL_WRITE",
                t->view[i].components ? "_C" : "", peal_type_c_name(t->view[i].type), i);
    if (t->reduces)
        fprintf(out, ", PEAL_REDUCE(double, r)");
    for (int i = 0; i < t->argument_count; i++)
        fprintf(out, ", double a%d", i);
    fprintf(out, ")\n{\n");
}

static void print_points(FILE *out, const mix_task *t)
{
    static const char *const weight[3] = {"0.01", "0.03", "0.07"};
    int writes = first_write(t), views = writes + t->write_count;

    fprintf(out, "    PEAL_FOR_%dD(t", t->axis_count);
    for (int k = 0; k < t->axis_count; k++)
        fprintf(out, ", %c", axes[k]);
    fprintf(out, ") {\n        double sum, value = %.17g", t->salt);
    for (int k = 0; k < t->axis_count; k++)
        fprintf(out, " + %s * %c", weight[k], axes[k]);
    fprintf(out, ";\n        (void)sum;\n");
    if (t->red_black) {
        fprintf(out, "        if ((0");
        for (int k = 0; k < t->axis_count; k++)
            fprintf(out, " + %c", axes[k]);
        fprintf(out, ") & 1)\n            continue;\n");
    }
    for (int i = 0; i < writes; i++)
        print_gather(out, t, i);
    for (int i = 0; i < t->argument_count; i++)
        fprintf(out, "        value += 0.11 * a%d;\n", i);
    fprintf(out, "        value = folded(value);\n");
    for (int i = t->read_count; i < views; i++)
        print_store(out, t, i);
    if (t->reduces)
        fprintf(out, "        partial += value - (double)(int64_t)value;\n");
    fprintf(out, "    }\n");
}

static void print_tile(FILE *out, const mix_task *t, int view)
{
    fprintf(out, "    PEAL_ONE(t) {\n        double sum = 0.001 * t.lo[0];\n");
    for (int k = 0; k < t->axis_count; k++)
        fprintf(out, "        int %c = t.lo[%d];\n        (void)%c;\n", axes[k], k, axes[k]);
    for (int i = 0; i < t->read_count; i++) {
        fprintf(out, "        sum += 0.37 * (double)");
        print_element(out, t, i, "0", NULL);
        fprintf(out, ";\n");
    }
    fprintf(out, "        v%d[0]", view);
    print_stored(out, t, view, "sum");
    fprintf(out, "    }\n");
}

static void print_kernel(FILE *out, const mix_task *t, int number)
{
    int views = first_write(t) + t->write_count;

    print_signature(out, t, number);
    /* Unrolled, a few graphs take NVRTC half a minute. */
    fprintf(out, "    volatile int none = 0;\n    (void)none;\n");
    if (t->reduces)
        fprintf(out, "    double partial = 0;\n");
    print_points(out, t);
    for (int i = t->read_count; i < views; i++)
        if (t->view[i].kind == VIEW_TILE)
            print_tile(out, t, i);
    if (t->reduces)
        fprintf(out, "    PEAL_PARTIAL(r, partial);\n");
    fprintf(out, "}\n");
}

/* Other processes write the same file: it comes into being complete. */
void random_write_kernels(random_graph *g, uint64_t seed)
{
    char name[64], path[512], made[560];

    snprintf(name, sizeof(name), "random-%llu.c", (unsigned long long)seed);
    snprintf(path, sizeof(path), "%s/%s", g->folder, name);
    snprintf(made, sizeof(made), "%s.%d", path, (int)getpid());
    FILE *out = fopen(made, "w");
    if (!out)
        abort();
    fprintf(out, "/* Into (-1024, 1024). */\n"
                 "static inline double folded(double value)\n{\n"
                 "    if (!(value < 1e15 && value > -1e15))\n        return 0.5;\n"
                 "    return value - 1024.0 * (double)(int64_t)(value / 1024.0);\n}\n");
    for (int i = 0; i < g->task_count; i++)
        print_kernel(out, &g->task[i], i);
    if (fclose(out) || rename(made, path))
        abort();
    peal_graph_set_folder(g->graph, g->folder);
    peal_graph_add_kernels(g->graph, name, PEAL_HERE);
}
