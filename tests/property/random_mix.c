/* The function of every random task: each element that it stores depends on every element of its
 * footprints. */
#include "tests/property/random_internal.h"

static int64_t offset_of(const peal_view *view, const int p[PEAL_AXES])
{
    return p[0] + p[1] * view->stride[1] + p[2] * view->stride[2] + p[3] * view->stride[3];
}

static double load(const peal_view *view, peal_type type, const int p[PEAL_AXES])
{
    int64_t i = offset_of(view, p);
    switch (type) {
    case PEAL_F64:
        return ((const double *)view->base)[i];
    case PEAL_F32:
        return (double)((const float *)view->base)[i];
    case PEAL_I32:
        return (double)((const int32_t *)view->base)[i];
    case PEAL_U8:
        return (double)((const uint8_t *)view->base)[i];
    default:
        return (double)((const int64_t *)view->base)[i];
    }
}

/* Into (-1024, 1024). */
static double folded(double value)
{
    if (!(value < 1e15 && value > -1e15))
        return 0.5;
    return value - 1024.0 * (double)(int64_t)(value / 1024.0);
}

static void store(const peal_view *view, peal_type type, const int p[PEAL_AXES], double value)
{
    int64_t i = offset_of(view, p);
    double f = folded(value);
    switch (type) {
    case PEAL_F64:
        ((double *)view->base)[i] = f;
        break;
    case PEAL_F32:
        ((float *)view->base)[i] = (float)f;
        break;
    case PEAL_I32:
        ((int32_t *)view->base)[i] = (int32_t)(f * 1000.0);
        break;
    case PEAL_U8:
        ((uint8_t *)view->base)[i] = (uint8_t)(int32_t)(f * 100.0);
        break;
    default:
        ((int64_t *)view->base)[i] = (int64_t)(f * 100000.0);
        break;
    }
}

static int scaled(const mix_view *m, int p)
{
    return m->scale == -2 ? (p - (p & 1)) / 2 : p * m->scale;
}

/* Offsets from low to high around a point belong to it along an axis. */
static void span_of(const mix_view *m, int axis_count, int k, int *low, int *high)
{
    *low = -m->grow[k][0];
    *high = m->grow[k][1] + (m->scale == 2 && k < axis_count);
}

static bool is_arm(const mix_view *m, int axis_count, const int d[3])
{
    int outside = 0;
    for (int k = 0; k < 3; k++)
        outside += d[k] < 0 || d[k] > (m->scale == 2 && k < axis_count);
    return outside <= 1;
}

/* A sum over the footprint around a point with weights that tell the elements apart. */
static double gather(const peal_view *view, const mix_view *m, int axis_count,
                     const int p[PEAL_AXES])
{
    static const int first[PEAL_AXES] = {0}, second[PEAL_AXES] = {1};
    double sum = 0;
    int low[3], high[3], d[3];
    if (m->kind != VIEW_POINTS)
        return load(view, m->type, first) + 0.5 * load(view, m->type, second);
    for (int k = 0; k < 3; k++)
        span_of(m, axis_count, k, &low[k], &high[k]);
    for (d[2] = low[2]; d[2] <= high[2]; d[2]++)
        for (d[1] = low[1]; d[1] <= high[1]; d[1]++)
            for (d[0] = low[0]; d[0] <= high[0]; d[0]++) {
                int q[PEAL_AXES] = {scaled(m, p[0]) + d[0], scaled(m, p[1]) + d[1],
                                    scaled(m, p[2]) + d[2], 0};
                if (m->star && !is_arm(m, axis_count, d))
                    continue;
                for (int c = 0; c < (m->components ? m->components : 1); c++) {
                    q[axis_count] = m->components ? c : q[axis_count];
                    sum += (1.0 + 0.5 * c + 0.25 * d[0] + 0.125 * d[1] + 0.0625 * d[2]) *
                           load(view, m->type, q);
                }
            }
    return sum;
}

static void store_point(const peal_view *view, const mix_view *m, int axis_count,
                        const int p[PEAL_AXES], double value)
{
    int block[3], d[3];
    for (int k = 0; k < 3; k++)
        block[k] = m->scale == 2 && k < axis_count;
    for (d[2] = 0; d[2] <= block[2]; d[2]++)
        for (d[1] = 0; d[1] <= block[1]; d[1]++)
            for (d[0] = 0; d[0] <= block[0]; d[0]++) {
                int q[PEAL_AXES] = {scaled(m, p[0]) + d[0], scaled(m, p[1]) + d[1],
                                    scaled(m, p[2]) + d[2], 0};
                for (int c = 0; c < (m->components ? m->components : 1); c++) {
                    q[axis_count] = m->components ? c : q[axis_count];
                    store(view, m->type, q, value + 0.7 * c + 0.2 * d[0] + 0.3 * d[1] + 0.4 * d[2]);
                }
            }
}

static void mix_point(const peal_call *call, const mix_task *t, const int p[PEAL_AXES],
                      double *partial)
{
    double value = t->salt + 0.01 * p[0] + 0.03 * p[1] + 0.07 * p[2];
    int first_write = t->read_count + t->update_count;
    if (t->red_black && (p[0] + p[1] + p[2]) & 1)
        return;
    for (int i = 0; i < first_write; i++)
        value += 0.37 * (i + 1) * gather(&call->view[i], &t->view[i], t->axis_count, p);
    for (int i = 0; i < t->argument_count; i++)
        value += 0.11 * call->argument[i].real;
    value = folded(value);
    for (int i = t->read_count; i < first_write + t->write_count; i++)
        if (t->view[i].kind == VIEW_POINTS)
            store_point(&call->view[i], &t->view[i], t->axis_count, p, value * (1.0 + 0.5 * i));
    *partial += value - (double)(int64_t)value;
}

void random_mix(const peal_call *call)
{
    static const int first[PEAL_AXES] = {0};
    const mix_task *t = call->user;
    double partial = 0;
    int p[PEAL_AXES] = {0}, views = t->read_count + t->update_count + t->write_count;
    for (p[2] = call->tile.lo[2]; p[2] < call->tile.hi[2]; p[2]++)
        for (p[1] = call->tile.lo[1]; p[1] < call->tile.hi[1]; p[1]++)
            for (p[0] = call->tile.lo[0]; p[0] < call->tile.hi[0]; p[0]++)
                mix_point(call, t, p, &partial);
    for (int i = t->read_count; i < views; i++)
        if (t->view[i].kind == VIEW_TILE)
            store(&call->view[i], t->view[i].type, first, partial + 0.001 * call->tile.lo[0]);
    if (t->reduces && call->partial[0])
        *(double *)call->partial[0] = partial;
}
