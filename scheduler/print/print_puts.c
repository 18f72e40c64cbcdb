/* The puts of a rank as text: what it and ranks of other hosts store into each other's memory. Of
 * several ranks in a process each shows its own; the network carries them in one list. */
#include "base/arena.h"
#include "scheduler/scheduler.h"

#include <inttypes.h>

/* By own rings: what one message takes of the adapter, and what makes it due. */
static void print_stores(const peal_put *put, FILE *f)
{
    fprintf(f, "; a ring, %s a message, due by a store of 4 bytes (record) and one of 8 (register)",
            peal_put_entries(put) == 1 ? "1 entry" : "2 entries");
}

static void print_list(const char *way, int process, const peal_put *put, int count, bool rings,
                       FILE *f)
{
    if (count)
        fprintf(f, "  %s process %d:\n", way, process);
    for (int i = 0; i < count; i++) {
        fprintf(f, "    %s of channel %d, rank %d's word at %" PRId64,
                put[i].credit ? "credit" : "flag", put[i].channel, put[i].rank, put[i].word);
        if (put[i].bytes)
            fprintf(f, ", %" PRId64 " bytes into %d slot%s at %" PRId64, put[i].bytes, put[i].slots,
                    put[i].slots == 1 ? "" : "s", put[i].slot);
        if (rings)
            print_stores(&put[i], f);
        fputc('\n', f);
    }
}

static void print_all(const peal_schedule *s, peal_arena *arena, FILE *f)
{
    const bool rings = s->machine->network == PEAL_TRANSPORT_MLX5;
    PEAL_ARENA_GUARD(arena, return );
    fprintf(f, "puts:\n");
    for (int p = 0; p < s->machine->processes; p++) {
        peal_pair pair;
        peal_arena_clear(arena);
        peal_list_puts(&s, 1, p, arena, &pair);
        print_list("to", p, pair.out, pair.out_count, rings, f);
        print_list("from", p, pair.in, pair.in_count, false, f);
    }
}

void peal_schedule_print_puts(const peal_schedule *s, FILE *f)
{
    peal_arena *arena = peal_has_puts(s) ? peal_arena_create() : NULL;
    if (arena)
        print_all(s, arena, f);
    peal_arena_destroy(arena);
}
