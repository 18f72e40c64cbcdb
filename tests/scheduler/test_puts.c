/* What processes put into each other's memory by a network: both ends derive the same list, each
 * word of such a channel stands in it once, and slots are where the receiver has them. */
#include "dsl/dsl.h"
#include "scheduler/scheduler.h"
#include "tests/property/random_graph.h"
#include "tests/scheduler/segments.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SEEDS = 150, RANKS = 8 };

typedef struct job {
    peal_machine machine;
    int node[RANKS];
    peal_diagnostics *list;
    peal_compilation *c;
    const peal_schedule *schedule[RANKS];
} job;

/* hosts: processes lie on them in blocks. */
static void begin(job *j, random_graph *random, int processes, int hosts, peal_mode mode)
{
    const peal_graph_data *data = NULL;
    *j = (job){.list = peal_diagnostics_create(),
               .machine = {.ranks = random_graph_ranks(random),
                           .processes = processes,
                           .workers = 2,
                           .cache_bytes = 1 << 18}};
    for (int i = 0; i < processes; i++)
        j->node[i] = i * hosts / processes;
    j->machine.node = j->node;
    peal_status status = peal_graph_resolve(random_graph_builder(random), j->list, &data);
    if (!status)
        status = peal_compilation_create(data, &j->machine, mode, j->list, &j->c);
    for (int rank = 0; !status && rank < j->machine.ranks; rank++)
        status = peal_compilation_schedule(j->c, rank, &j->schedule[rank]);
    if (status)
        peal_diagnostics_print(j->list, stderr, 5);
    assert_int_equal(status, PEAL_STATUS_OK);
}

static void end(job *j)
{
    peal_compilation_destroy(j->c);
    peal_diagnostics_destroy(j->list);
}

static void list_of(const job *j, int process, int other, peal_arena *arena, peal_pair *out)
{
    int first = 0, count = 0;
    for (int rank = 0; rank < j->machine.ranks; rank++)
        if (peal_machine_process(&j->machine, rank) == process) {
            first = count ? first : rank;
            count++;
        }
    peal_list_puts(j->schedule + first, count, other, arena, out);
}

static void check_lists(const peal_put *out, int count, const peal_put *in, int in_count)
{
    assert_int_equal(count, in_count);
    for (int i = 0; i < count; i++) {
        peal_put mine = out[i], theirs = in[i];
        mine.index = theirs.index = mine.channel = theirs.channel = 0;
        assert_int_equal(mine.rank, theirs.rank);
        assert_int_equal(mine.word, theirs.word);
        assert_int_equal(mine.credit, theirs.credit);
        assert_int_equal(mine.slot, theirs.slot);
        assert_int_equal(mine.slot_bytes, theirs.slot_bytes);
        assert_int_equal(mine.bytes, theirs.bytes);
        assert_int_equal(mine.slots, theirs.slots);
        assert_true(mine.quantum == theirs.quantum);
        assert_true(mine.bytes <= mine.slot_bytes && mine.bytes % 8 == 0);
        assert_int_equal(mine.slot >= 0, mine.bytes > 0);
        assert_int_equal(mine.slots & (mine.slots - 1), 0);
        if (i > 0)
            assert_true(out[i - 1].rank < out[i].rank ||
                        (out[i - 1].rank == out[i].rank && out[i - 1].word < out[i].word));
    }
}

/* Words that channels of one process have by a network to another, as a look at all says. */
static int count_words(const job *j, int process, int other)
{
    int count = 0;
    for (int rank = 0; rank < j->machine.ranks; rank++)
        for (int i = 0; i < j->schedule[rank]->channel_count; i++) {
            const peal_channel *c = &j->schedule[rank]->channel[i];
            if (peal_machine_process(&j->machine, rank) == process &&
                peal_machine_process(&j->machine, c->peer) == other &&
                c->transport == PEAL_TRANSPORT_TCP)
                count += 1 + (c->credit_offset >= 0);
        }
    return count;
}

static void check_transports(const job *j)
{
    for (int rank = 0; rank < j->machine.ranks; rank++)
        for (int i = 0; i < j->schedule[rank]->channel_count; i++) {
            const peal_channel *c = &j->schedule[rank]->channel[i];
            int here = peal_machine_process(&j->machine, rank);
            int there = peal_machine_process(&j->machine, c->peer);
            peal_transport_kind expected = here == there                     ? PEAL_TRANSPORT_SELF
                                           : j->node[here] == j->node[there] ? PEAL_TRANSPORT_SHM
                                                                             : PEAL_TRANSPORT_TCP;
            assert_int_equal(c->transport, expected);
            for (int k = 0; k < c->piece_count; k++)
                assert_false(expected == PEAL_TRANSPORT_TCP && c->piece[k].direct);
        }
}

static int check_pair(const job *j, int p, int q)
{
    peal_arena *arena = peal_arena_create();
    peal_pair here, there;
    PEAL_ARENA_GUARD(arena, fail());
    list_of(j, p, q, arena, &here);
    list_of(j, q, p, arena, &there);
    check_lists(here.out, here.out_count, there.in, there.in_count);
    check_lists(here.in, here.in_count, there.out, there.out_count);
    assert_true(here.out_hash == there.in_hash && here.in_hash == there.out_hash);
    int count = here.out_count + here.in_count;
    peal_arena_destroy(arena);
    return count;
}

static int check_pairs(const job *j)
{
    int puts = 0;
    for (int p = 0; p < j->machine.processes; p++)
        for (int q = 0; q < p; q++) {
            int count = check_pair(j, p, q);
            assert_int_equal(count, count_words(j, p, q));
            puts += count;
        }
    return puts;
}

static void both_ends_list_the_same(void **state)
{
    int puts = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        random_graph *random = random_graph_create(seed);
        int ranks = random_graph_ranks(random);
        peal_mode mode = seed % 3 == 0   ? PEAL_MODE_SYNC
                         : seed % 3 == 1 ? PEAL_MODE_STREAM
                                         : PEAL_MODE_FUSED;
        for (int processes = 1 + (int)(seed % 2); processes <= ranks; processes += 2)
            for (int hosts = 1; hosts <= processes; hosts++) {
                char text[256];
                job j;
                begin(&j, random, processes, hosts, mode);
                check_transports(&j);
                puts += check_pairs(&j);
                for (int rank = 0; rank < ranks; rank++)
                    if (!segment_is_sound(j.schedule, rank, text, sizeof(text)))
                        fail_msg("seed %d: %s", (int)seed, text);
                end(&j);
            }
        random_graph_destroy(random);
    }
    print_message("%d puts\n", puts);
    assert_true(puts > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(both_ends_list_the_same)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
