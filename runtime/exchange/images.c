/* Images: halo points that repeat points of the same array beyond a periodic end, as few and as
 * large copies as possible.
 *
 * An edge or corner is an image along several axes. It equals what lies one period along the last
 * of them away, which is a halo point that an image along the other axes fills. So images are made
 * axis by axis: along y from rows that have their ends already, along z from whole planes; and
 * boxes that then go the same way are joined. */
#include "base/box.h"
#include "runtime/exchange/exchange.h"

#include <string.h>

static int last_axis(const peal_exchange_image *image)
{
    int axis = PEAL_AXES - 1;
    while (axis > 0 && image->shift[axis] == 0)
        axis--;
    return axis;
}

/* Some other image fills the points one period along `axis` away from `image` with what it needs.
 */
static bool is_filled_before(const peal_exchange_image *all, int count,
                             const peal_exchange_image *image, int axis)
{
    peal_exchange_image other = *image;
    other.target.lo[axis] -= image->shift[axis];
    other.target.hi[axis] -= image->shift[axis];
    other.shift[axis] = 0;
    for (int i = 0; i < count; i++)
        if (all[i].array == image->array &&
            memcmp(all[i].shift, other.shift, sizeof(other.shift)) == 0 &&
            peal_box_contains(&all[i].target, &other.target))
            return true;
    return false;
}

/* Images along one axis only, where possible; from the last axis on, so that those asked for still
 * have their own shifts. */
static void go_by_axes(peal_exchange_image *image, int count)
{
    for (int axis = PEAL_AXES - 1; axis >= 0; axis--)
        for (int i = 0; i < count; i++) {
            if (image[i].axis != axis || !is_filled_before(image, count, &image[i], axis))
                continue;
            for (int k = 0; k < axis; k++)
                image[i].shift[k] = 0;
        }
}

static bool join(peal_exchange_image *a, const peal_exchange_image *b)
{
    int axis = -1;
    if (a->array != b->array || a->axis != b->axis ||
        memcmp(a->shift, b->shift, sizeof(a->shift)) != 0)
        return false;
    for (int k = 0; k < PEAL_AXES; k++) {
        if (a->target.lo[k] == b->target.lo[k] && a->target.hi[k] == b->target.hi[k])
            continue;
        if (axis >= 0 || (a->target.hi[k] != b->target.lo[k] && b->target.hi[k] != a->target.lo[k]))
            return false;
        axis = k;
    }
    if (axis < 0)
        return false;
    if (b->target.lo[axis] < a->target.lo[axis])
        a->target.lo[axis] = b->target.lo[axis];
    else
        a->target.hi[axis] = b->target.hi[axis];
    return true;
}

static int join_boxes(peal_exchange_image *image, int count)
{
    bool changed = true;
    while (changed) {
        changed = false;
        for (int i = 0; i < count; i++)
            for (int k = 0; k < count; k++)
                if (k != i && join(&image[i], &image[k])) {
                    image[k] = image[--count];
                    changed = true;
                    i = i == count ? k : i;
                }
    }
    return count;
}

static bool precedes(const peal_exchange_image *a, const peal_exchange_image *b)
{
    return a->array != b->array ? a->array < b->array : a->axis < b->axis;
}

static void sort(peal_exchange_image *image, int count)
{
    for (int i = 1; i < count; i++)
        for (int k = i; k > 0 && precedes(&image[k], &image[k - 1]); k--) {
            peal_exchange_image other = image[k];
            image[k] = image[k - 1];
            image[k - 1] = other;
        }
}

int peal_exchange_join_images(peal_exchange_image *image, int count)
{
    for (int i = 0; i < count; i++)
        image[i].axis = last_axis(&image[i]);
    go_by_axes(image, count);
    count = join_boxes(image, count);
    sort(image, count);
    return count;
}
