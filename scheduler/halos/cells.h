/* How statements' effects on a rank's halos are put together: the parts of halo_cells.c. */
#ifndef PEAL_SCHEDULER_HALOS_CELLS_H
#define PEAL_SCHEDULER_HALOS_CELLS_H

#include "scheduler/geometry/geometry.h"
#include "scheduler/halos/halos.h"

typedef enum cell_use { CELLS_READ, CELLS_CHANGED, CELLS_RENEWED, CELLS_TOUCHED } cell_use;

typedef struct cell_builder {
    halo_map *m;
    bool cuts; /* the first look */
    halo_effect *effect;
    halo_effect unused; /* of the first look */
} cell_builder;

/* An effect of a statement on a name, between begin and end; access: of a task, else -1. */
void begin_effect(cell_builder *b, const peal_statement *s, int name, int access,
                  peal_source source);
void end_effect(cell_builder *b, const peal_statement *s);
/* What the statement does on a rank happens when it does there. */
void set_when(cell_builder *b, const peal_statement *s, const rank_view *v);
void use_box(cell_builder *b, int name, cell_use use, const peal_box *box);
/* A neighbour's box of its own points, as far as they are in my halo, in my coordinates. */
peal_box box_in_halo(const halo_map *m, int name, const halo_neighbour *n, const peal_box *box);
/* The owner changes these. */
void use_box_of(cell_builder *b, int name, const halo_neighbour *n, const peal_box *box);

/* halo_messages.c */
void use_recv(cell_builder *b, const peal_statement *s);
void use_sends(cell_builder *b);

#endif
