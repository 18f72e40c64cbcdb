/* What was found, in words: the array and the point in global coordinates, and where that is from
 * the tile's point that touches it. Where coordinates would be a guess, the distance in elements.
 */
#define _GNU_SOURCE
#include "runtime/footprints/internal.h"

#include "base/box.h"
#include "base/checked.h"

#include <stdlib.h>

typedef struct location {
    bool known;    /* point is */
    bool stored;   /* it lies in the array */
    bool relative; /* to the tile's point, by `offset` */
    int64_t point[PEAL_AXES], offset[PEAL_AXES];
    bool whole[PEAL_AXES]; /* the axis has nothing to do with the tile's point */
} location;

static int axes_of(const peal_layout *layout)
{
    return layout->stored.axis_count > 0 ? layout->stored.axis_count : 1;
}

/* The array's point that the tile's point stands for, at the beginning of axes that have nothing to
 * do with it; false: none has. */
static bool image_of(const checked_view *view, const int64_t *tile_point, int64_t image[PEAL_AXES],
                     bool whole[PEAL_AXES], bool *same)
{
    const peal_layout *layout = &view->array->layout;
    bool any = false;
    *same = true;
    for (int k = 0; k < PEAL_AXES; k++) {
        image[k] = layout->stored.lo[k];
        if (layout->stored.hi[k] - layout->stored.lo[k] <= 1 && k >= axes_of(layout))
            continue;
        if (!view->access || view->access->reach_count < 1)
            return false;
        const peal_reach_axis *axis = &view->access->reach[0].axis[k];
        whole[k] = axis->fixed;
        if (whole[k])
            continue;
        any = true;
        image[k] = peal_floor_divide(tile_point[k] * axis->num, axis->den);
        *same = *same && axis->num == axis->den;
    }
    return any;
}

/* Elements that lie so far apart may be apart by several offsets: the one nearest to 0 is meant;
 * along axes that are counted from their beginning, the first that is not behind. */
static void split_offset(const peal_layout *layout, int64_t rest, const bool whole[PEAL_AXES],
                         int64_t offset[PEAL_AXES])
{
    int64_t aside = 0; /* along the axes before those: half of what the first of them steps over */
    for (int k = 0; k < PEAL_AXES; k++)
        offset[k] = 0;
    for (int k = axes_of(layout) - 1; k > 0; k--)
        aside = whole[k] ? layout->stride[k] / 2 : aside;
    for (int k = axes_of(layout) - 1; k > 0; k--) {
        int64_t stride = layout->stride[k] > 0 ? layout->stride[k] : 1;
        offset[k] = whole[k] ? peal_floor_divide(rest + aside, stride)
                             : peal_floor_divide(2 * rest + stride, 2 * stride);
        rest -= offset[k] * stride;
    }
    offset[0] = rest;
}

static location location_of(const checked_task *t, const finding *found)
{
    const checked_view *view = &t->view[found->view];
    const peal_layout *layout = &view->array->layout;
    int64_t elements = layout->bytes / view_element(t, found->view), image[PEAL_AXES];
    location p = {.stored = found->element >= 0 && found->element < elements};
    bool same = false;
    if (found->has_point && image_of(view, found->point, image, p.whole, &same)) {
        int64_t at = 0;
        for (int k = 0; k < PEAL_AXES; k++)
            at += (image[k] - layout->stored.lo[k]) * layout->stride[k];
        split_offset(layout, found->element - at, p.whole, p.offset);
        p.known = true;
        p.relative = same;
        for (int k = 0; k < PEAL_AXES; k++) {
            p.point[k] = image[k] + p.offset[k];
            p.stored =
                p.stored && p.point[k] >= layout->stored.lo[k] && p.point[k] < layout->stored.hi[k];
        }
    } else if (axes_of(layout) == 1) {
        p.known = true;
        p.point[0] = layout->stored.lo[0] + found->element;
    } else if (p.stored) {
        p.known = true;
        peal_layout_point(layout, found->element, p.point);
    }
    return p;
}

static void print_box(const peal_box *box, int axes, char *text)
{
    int used = 0;
    for (int k = 0; k < axes; k++)
        used += snprintf(text + used, (size_t)(TEXT - used), "%s[%lld, %lld)", k ? " x " : "",
                         (long long)box->lo[k], (long long)box->hi[k]);
}

/* "(x + 2, y)"; along axes that the point has not, the coordinate: "(x, y, 4)" */
static void print_offset(const location *p, int axes, char *text)
{
    const int64_t *offset = p->offset;
    int used = 0;
    for (int k = 0; k < axes; k++) {
        if (p->whole[k]) {
            used += snprintf(text + used, (size_t)(TEXT - used), "%s%lld", k ? ", " : "(",
                             (long long)p->point[k]);
            continue;
        }
        used += snprintf(text + used, (size_t)(TEXT - used), "%s%c", k ? ", " : "(", "xyzw"[k]);
        if (offset[k])
            used += snprintf(text + used, (size_t)(TEXT - used), " %c %lld",
                             offset[k] < 0 ? '-' : '+', (long long)llabs(offset[k]));
    }
    snprintf(text + used, (size_t)(TEXT - used), ")");
}

/* " at (9, 3)", or " 12 elements behind its last". */
static void print_where(const checked_task *t, const finding *found, const location *p, char *text)
{
    const peal_layout *layout = &t->view[found->view].array->layout;
    int64_t elements = layout->bytes / view_element(t, found->view);
    if (p->known) {
        char point[TEXT];
        peal_point_text(p->point, axes_of(layout), point, TEXT);
        snprintf(text, TEXT, " at %.100s", point);
        return;
    }
    bool before = found->element < 0;
    int64_t far = before ? -found->element : found->element - elements + 1;
    snprintf(text, TEXT, ", %lld element%s %s", (long long)far, far == 1 ? "" : "s",
             before ? "before its first" : "behind its last");
}

static const char *hint_of(const checked_task *t, const finding *found, bool write,
                           const location *p)
{
    peal_access_mode mode = t->view[found->view].mode;
    if (!p->stored)
        return "mend the kernel; or give the field a halo that wide, and declare what is touched";
    if (write && mode == PEAL_READ_ACCESS)
        return "declare it as `update` or `write`, or mend the kernel";
    if (!write && mode == PEAL_WRITE_ACCESS)
        return "declare it as `update`, or mend the kernel";
    return "declare it (star, grow, whole, ...), or mend the kernel";
}

/* "(rank 0, tile [0, 8) x [0, 4), step 3)" */
void print_site(const checked_task *t, const peal_tile *tile, bool has_tile, char *text)
{
    char box[TEXT] = "", when[40];
    int axes = t->task->tiling_count ? t->task->tiling[0].box.axis_count : 1;
    peal_box extent = {.axis_count = axes};
    for (int k = 0; k < PEAL_AXES; k++) {
        extent.lo[k] = tile->lo[k];
        extent.hi[k] = tile->hi[k];
    }
    print_box(&extent, axes > 0 ? axes : 1, box);
    host_site_when(&t->owner->site, when, sizeof(when));
    snprintf(text, 2 * TEXT, "(rank %d%s%s, %s)", t->schedule->rank, has_tile ? ", tile " : "",
             has_tile ? box : "", when);
}

static void tell_access(const checked_task *t, const finding *found, const char *site)
{
    const checked_view *view = &t->view[found->view];
    const peal_layout *layout = &view->array->layout;
    bool write = found->kind == FINDING_WRITE || found->kind == FINDING_QUIET ||
                 (found->kind == FINDING_FAULT && found->write);
    char where[TEXT], stored[TEXT], outside[TEXT + 40], from[2 * TEXT + 40] = "", point[TEXT],
                                                                        offset[TEXT];
    location p = location_of(t, found);
    print_where(t, found, &p, where);
    print_box(&layout->stored, axes_of(layout), stored);
    snprintf(outside, sizeof(outside), "outside of what is stored, %s", stored);
    if (p.relative) {
        int axes = t->task->tiling_count ? t->task->tiling[0].box.axis_count : 1;
        peal_point_text(found->point, axes < axes_of(layout) ? axes : axes_of(layout), point, TEXT);
        print_offset(&p, axes_of(layout), offset);
        snprintf(from, sizeof(from), ": %s of its point %s", offset, point);
    }
    peal_report(t->owner->plan->session->diagnostics,
                write ? PEAL_E_UNDECLARED_WRITE : PEAL_E_UNDECLARED_READ, t->task->source,
                hint_of(t, found, write, &p), "task '%s' %s %s'%s'%s, %s %s%s", t->task->name,
                write ? "writes" : "reads", view->access ? "" : "its part of ", view->name, where,
                p.stored ? "which it doesn't declare" : outside, site, from);
}

static void tell_unsteady(const checked_task *t, const finding *found, const char *site)
{
    static const char *const hint =
        "a kernel's results come from its arguments alone: no rand(), clock, address, static or "
        "uninitialised variable";
    peal_diagnostics *diagnostics = t->owner->plan->session->diagnostics;
    char where[TEXT];
    if (found->view < 0) {
        peal_report(diagnostics, PEAL_E_KERNEL_NOT_DETERMINISTIC, t->task->source, hint,
                    "task '%s' is not deterministic: run on the same contents elsewhere in memory, "
                    "it gives different values %s",
                    t->task->name, site);
        return;
    }
    location p = location_of(t, found);
    print_where(t, found, &p, where);
    peal_report(diagnostics, PEAL_E_KERNEL_NOT_DETERMINISTIC, t->task->source, hint,
                "task '%s' is not deterministic: run twice on the same contents, it gives %s'%s'%s "
                "different values %s",
                t->task->name, t->view[found->view].access ? "" : "its part of ",
                t->view[found->view].name, where, site);
}

static void tell_tile(const checked_task *t, const finding *found, const char *site)
{
    char where[TEXT];
    location p = location_of(t, found);
    print_where(t, found, &p, where);
    peal_report(
        t->owner->plan->session->diagnostics, PEAL_E_KERNEL_DEPENDS_ON_TILE, t->task->source,
        "kernels go through their tile, and take nothing else from it: the domain's ends are "
        "fields' sizes (args: u.nx), not the tile's; or give the task a `tile`",
        "task '%s' gives '%s'%s one value in its tile, and another where %s %s", t->task->name,
        t->view[found->view].name, where,
        found->has_point ? "the point is a tile of its own" : "the tile has another number", site);
}

void tell(const checked_task *t, const peal_tile *tile, const finding *found)
{
    peal_diagnostics *diagnostics = t->owner->plan->session->diagnostics;
    bool *reported = &t->owner->reported[t->task->statement];
    char site[2 * TEXT];
    t->owner->findings++;
    if (*reported)
        return;
    *reported = true;
    print_site(t, tile, found->has_tile, site);
    if (found->kind == FINDING_CRASH)
        peal_report(
            diagnostics, PEAL_E_KERNEL_CRASHED, t->task->source,
            "none of its arrays is near: look for a wild or null pointer, a division, the stack",
            "task '%s' crashed: %s %s", t->task->name, found->text, site);
    else if (found->kind == FINDING_UNSTORED)
        peal_report(diagnostics, PEAL_E_PARTIAL_NOT_STORED, t->task->source,
                    "call PEAL_PARTIAL once for each tile, on every path",
                    "task '%s' doesn't store its part of '%s' %s", t->task->name,
                    t->view[found->view].name, site);
    else if (found->kind == FINDING_STATIC)
        peal_report(diagnostics, PEAL_E_KERNEL_NOT_DETERMINISTIC, t->task->source,
                    "keep it in a buffer, which the task updates; constants are `static const`",
                    "task '%s' changes a static variable, so that what it computes may depend on "
                    "the tiles before %s",
                    t->task->name, site);
    else if (found->kind == FINDING_TILE)
        tell_tile(t, found, site);
    else if (found->kind == FINDING_UNSTEADY)
        tell_unsteady(t, found, site);
    else
        tell_access(t, found, site);
}
