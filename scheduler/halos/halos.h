/* Halos that must not be read stale: which cells of a rank's halos each statement reads, changes
 * (at their owners) and renews, and the walk through the program that follows what is stale.
 *
 * A cell is a box of halo points that every box in sight contains or leaves out: the state of an
 * array is a bit a cell. Where there would be too many cells, some boxes cut through cells: what is
 * read or changed is rounded up to whole cells then, what is renewed is rounded down. */
#ifndef PEAL_SCHEDULER_HALOS_HALOS_H
#define PEAL_SCHEDULER_HALOS_HALOS_H

#include "scheduler/classes/rank_classes.h"

typedef uint64_t cell_word;
enum { CELLS_OF_WORD = 64, AXIS_CUTS = 48, MOST_CELLS = 1 << 14 };
enum { LOOP_DEPTHS = 8 /* at least as many as loops can be nested */ };

/* The cells of arrays of one shape: of those that swaps exchange. */
typedef struct halo_grid {
    int64_t cut[PEAL_AXES][AXIS_CUTS]; /* ascending coordinates */
    int cut_count[PEAL_AXES];          /* cells and one */
    int cells, words;
    peal_box stored, own;
    cell_word *halo; /* cells whose points another rank owns, or are images */
} halo_grid;

/* What has a state: a field with a halo; what a message carries from its send to its receive; or
 * whether a halo is still what a message took from it, for its owner. */
typedef struct halo_name {
    int array;
    int recv;     /* statement: of a message under way; -1: the field itself */
    bool is_back; /* of one that goes back to the owner */
    halo_grid *grid;
    int first_word;
} halo_name;

/* What a statement does to one name. NULL: nothing. */
typedef struct halo_effect {
    int name;
    int access; /* of a task; -1 */
    peal_source source;
    bool stale_is_meant;
    bool told;
    cell_word *read, *change, *renew;
    cell_word *touch; /* of the changes those of the rank itself, in its own halo */
    int back; /* name: where my halo is still what went back, the change makes it current; -1 */
    int from; /* renewed as what has come by this name; -1: as its owner's points are now */
    const peal_expr *when; /* of a statement that happens in other iterations on other ranks: what
                              its condition is on the rank that does this; else NULL */
} halo_effect;

typedef struct effect_list {
    halo_effect *item;
    int count, capacity;
} effect_list;

/* A neighbour of the rank that is looked at. */
typedef struct halo_neighbour {
    int direction[PEAL_RANK_AXES];
    int rank;
    const rank_view *view; /* of it, or of one that is alike */
} halo_neighbour;

/* One rank's halos. */
typedef struct halo_map {
    const common_input *c;
    const pass_context *pass;
    condition_table *conditions;
    peal_arena *arena;
    int rank;
    const rank_view *view; /* of it, or of one that is alike */
    halo_neighbour neighbour[26];
    int neighbour_count;
    halo_name *name;
    int name_count, name_capacity, words;
    int *name_of;        /* by array; -1: has no halo */
    effect_list *effect; /* by statement */
    bool any_read;
} halo_map;

/* halo_cells.c: `neighbour` and what stands above it are given. */
peal_status map_halos(halo_map *m);
/* The direction of a cell's owner, and how far from the part its points are along the axes of the
 * direction. */
void locate_cell(const halo_grid *g, int cell, int direction[PEAL_RANK_AXES], int64_t *nearest,
                 int64_t *farthest);
static inline bool has_cell(const cell_word *cells, int cell)
{
    return cells[cell / CELLS_OF_WORD] >> (cell % CELLS_OF_WORD) & 1;
}

/* halo_walk.c: whether any task may read a stale halo; `tell` is called for each that may, once an
 * access, with the stale cells that it reads. */
typedef struct halo_event {
    int statement; /* -1: none yet */
    int64_t step;  /* as in a story */
} halo_event;

typedef struct halo_stale_read {
    const halo_map *map;
    const peal_statement *statement;
    const halo_effect *effect;
    const cell_word *cells;
    int64_t step;
    const halo_event *changed, *renewed; /* by cell */
    bool cautious; /* conditions were not followed from step to step, as there are too many */
} halo_stale_read;

bool walk_halos(halo_map *m, void (*tell)(const halo_stale_read *read));

/* counter_period.c: with all other counters as they may be, an expression of the counter of a loop
 * has equal values `period` iterations later, from iteration `from` on. False: not known. */
bool counter_period(const peal_expr *expr, int depth, const peal_scope *scope, int64_t *period,
                    int64_t *from);

/* stale_reads.c: whether any rank reads a halo that its owner has changed since it was renewed, by
 * a view of each class; or by views of all ranks that are needed, classes NULL: of all. */
peal_status check_halos_by_class(peal_compilation *c, const rank_classes *classes,
                                 rank_view *const *view);
peal_status check_halos_by_rank(peal_compilation *c, const rank_classes *classes);
/* unread_exchanges.c: whose halos are there, and are read, on some rank. */
typedef struct halo_readers {
    bool *has, *read; /* by array */
} halo_readers;

void begin_halo_readers(const common_input *c, const pass_context *pass, halo_readers *out);
void note_halo_readers(const common_input *c, const rank_view *v, halo_readers *readers);
/* Warns of exchanges of halos that no rank reads. */
void warn_of_halos(const common_input *c, const pass_context *pass, const halo_readers *readers);

#endif
