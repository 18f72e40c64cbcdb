/* What an exchange brings: each halo point that is read and has another owner (or is an image) is
 * brought exactly once, from its owner's place; both ends agree. On random topologies and sizes,
 * against the language's definitions point by point.
 *
 * test_pieces [SEED]: one seed only. */
#include "scheduler/messages/messages.h"
#include "tests/scheduler/trial.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SEEDS = 1500 };

static uint64_t first_seed = 1, last_seed = SEEDS;

typedef struct exchange_trial {
    bool read, star, read_star, limited;
    int64_t amount[PEAL_AXES][2], reach[PEAL_AXES][2];
} exchange_trial;

/* Whether the task, which visits my part, reads p. */
static bool reads(const trial *t, const exchange_trial *e, const int position[PEAL_AXES],
                  const int64_t p[PEAL_AXES])
{
    int64_t low[PEAL_AXES] = {0}, high[PEAL_AXES] = {1, 1, 1, 1}, d[PEAL_AXES];
    for (int k = 0; k < t->f.axis_count; k++) {
        low[k] = -e->reach[k][0];
        high[k] = e->reach[k][1] + 1;
    }
    memcpy(d, low, sizeof(d));
    do {
        int64_t x[PEAL_AXES];
        int steps = 0;
        for (int k = 0; k < PEAL_AXES; k++) {
            x[k] = p[k] - d[k];
            steps += d[k] != 0;
        }
        if ((!e->read_star || steps < 2) && brute_in_part(&t->f, position, x))
            return true;
    } while (brute_next(low, high, d));
    return false;
}

/* Whether the exchange may bring halo point p: within its amounts, not a corner of a star. */
static bool is_offered(const trial *t, const exchange_trial *e, const int position[PEAL_AXES],
                       const int64_t p[PEAL_AXES], int direction[PEAL_AXES])
{
    brute_field less = t->f;
    int steps = 0;
    brute_direction(&t->f, position, p, direction);
    for (int k = 0; k < PEAL_AXES; k++) {
        steps += direction[k] != 0;
        if (direction[k])
            memcpy(less.halo[k], e->amount[k], sizeof(less.halo[k]));
    }
    return brute_is_stored(&t->f, position, p) && !brute_is_own(&t->f, position, p) &&
           brute_is_stored(&less, position, p) && !(e->star && steps > 1);
}

/* The piece's source of target point p is its owner's. */
static void check_source(trial *t, int owner, const peal_piece *piece, const int64_t p[PEAL_AXES])
{
    int position[PEAL_AXES];
    int64_t source[PEAL_AXES];
    for (int k = 0; k < PEAL_AXES; k++) {
        source[k] = piece->source.lo[k] + p[k] - piece->target[k];
        EXPECT(t, source[k] == brute_image(&t->f, k, p[k]), "target %d comes from %d along axis %d",
               (int)p[k], (int)source[k], k);
    }
    trial_position(t, owner, position);
    EXPECT(t, brute_is_own(&t->f, position, source), "rank %d does not own the source", owner);
}

static int count_pieces(trial *t, const peal_piece *piece, int count, int owner,
                        const int64_t p[PEAL_AXES])
{
    int found = 0;
    for (int i = 0; i < count; i++) {
        peal_box target = {.axis_count = PEAL_AXES};
        for (int k = 0; k < PEAL_AXES; k++) {
            target.lo[k] = piece[i].target[k];
            target.hi[k] = piece[i].target[k] + piece[i].target_extent[k];
        }
        if (!trial_holds(&target, p))
            continue;
        found++;
        check_source(t, owner, &piece[i], p);
    }
    return found;
}

static int direction_number(const int direction[PEAL_AXES])
{
    return direction[0] + 1 + 3 * (direction[1] + 1 + 3 * (direction[2] + 1));
}

/* Halo points come a direction at a time: those of a direction of which one is read. */
static void compare_exchange(trial *t, const exchange_trial *e, int rank, int statement)
{
    rank_view *v = view_at(&t->c->views, rank, STAGE_MESSAGES);
    int position[PEAL_AXES], direction[PEAL_AXES];
    int64_t low[PEAL_AXES], high[PEAL_AXES], p[PEAL_AXES];
    bool wanted[27] = {false}, any = false;
    trial_position(t, rank, position);
    trial_range(t, low, high);
    memcpy(p, low, sizeof(p));
    do
        if (e->read && brute_is_stored(&t->f, position, p) && !brute_is_own(&t->f, position, p) &&
            reads(t, e, position, p)) {
            any = true;
            if (is_offered(t, e, position, p, direction))
                wanted[direction_number(direction)] = true;
        }
    while (brute_next(low, high, p));
    memcpy(p, low, sizeof(p));
    do {
        int found = count_pieces(t, v->local[statement], v->local_count[statement], rank, p);
        for (int i = 0; i < v->message_count; i++)
            if (!v->message[i].outgoing)
                found += count_pieces(t, v->message[i].piece, v->message[i].piece_count,
                                      v->message[i].peer, p);
        bool expected = is_offered(t, e, position, p, direction) &&
                        (!any || wanted[direction_number(direction)]);
        EXPECT(t, found == expected, "rank %d receives (%d, %d, %d) %d times, not %d", rank,
               (int)p[0], (int)p[1], (int)p[2], found, expected);
    } while (brute_next(low, high, p));
}

static bool same_box(const peal_box *a, const peal_box *b)
{
    return !memcmp(a->lo, b->lo, sizeof(a->lo)) && !memcmp(a->hi, b->hi, sizeof(a->hi));
}

/* What one end sends is what the other expects. */
static void check_twins(trial *t)
{
    for (int rank = 0; rank < t->ranks; rank++) {
        rank_view *v = view_at(&t->c->views, rank, STAGE_MESSAGES);
        for (int i = 0; i < v->message_count; i++) {
            rank_view *peer = view_at(&t->c->views, v->message[i].peer, STAGE_MESSAGES);
            int peer_end = peer_end_of(&t->c->pass, peer, rank, &v->message[i]);
            EXPECT(t, peer_end >= 0, "rank %d, message %d has no other end", rank, i);
            const rank_message *a = &v->message[i], *b = &peer->message[peer_end];
            EXPECT(t, a->piece_count == b->piece_count, "rank %d, message %d", rank, i);
            for (int k = 0; k < a->piece_count; k++)
                EXPECT(t,
                       same_box(&a->piece[k].source, &b->piece[k].source) &&
                           !memcmp(a->piece[k].target, b->piece[k].target,
                                   sizeof(a->piece[k].target)),
                       "rank %d, message %d, piece %d", rank, i, k);
        }
    }
}

static void add_exchange_and_reader(trial *t, exchange_trial *e)
{
    char amount[96], reach[96];
    *e = (exchange_trial){.read = trial_below(t, 4) > 0,
                          .star = trial_below(t, 3) == 0,
                          .read_star = trial_below(t, 2),
                          .limited = trial_below(t, 3) == 0};
    for (int k = 0; k < t->f.axis_count; k++)
        for (int side = 0; side < 2; side++) {
            e->amount[k][side] = t->f.halo[k][side];
            if (e->limited)
                e->amount[k][side] = trial_below(t, (int)t->f.halo[k][side] + 1);
            e->reach[k][side] = trial_below(t, (int)t->f.halo[k][side] + 1);
        }
    e->star &= e->limited;
    peal_access_desc item = {.name = "u"}, read = {.name = "u"};
    trial_amounts(t, e->amount, amount);
    trial_amounts(t, e->reach, reach);
    if (e->limited)
        *(e->star ? &item.star : &item.grow) = amount;
    *(e->read_star ? &read.star : &read.grow) = reach;
    size_t used = strlen(t->about);
    snprintf(t->about + used, sizeof(t->about) - used, "\nexchange %s%s, read %s%s",
             e->star ? "star " : "", e->limited ? amount : "all",
             !e->read       ? "nothing"
             : e->read_star ? "star "
                            : "",
             e->read ? reach : "");
    peal_graph_begin(t->graph, PEAL_STEP);
    peal_graph_add_exchange(t->graph, .exchange = {item});
    if (e->read)
        peal_graph_add_task(t->graph, .name = "t", .kernel = "t", .box = {.name = "u"},
                            .read = {read});
    peal_graph_end(t->graph);
}

static void test_exchanges(void **state)
{
    (void)state;
    for (uint64_t seed = first_seed; seed <= last_seed; seed++) {
        trial t;
        exchange_trial e;
        trial_begin(&t, seed, false);
        add_exchange_and_reader(&t, &e);
        bool valid = trial_compile(&t);
        EXPECT(&t, valid == !brute_is_refused(&t.f), "valid: %d", valid);
        for (int rank = 0; valid && rank < t.ranks; rank++)
            compare_exchange(&t, &e, rank, 0);
        if (valid)
            check_twins(&t);
        trial_end(&t);
    }
}

int main(int argc, char **argv)
{
    if (argc > 1)
        first_seed = last_seed = strtoull(argv[1], NULL, 10);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exchanges),
    };
    return cmocka_run_group_tests_name("pieces", tests, NULL, NULL);
}
