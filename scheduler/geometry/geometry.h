/* Geometry: how fields are cut, which points a rank owns and stores, and which boxes of points the
 * graph means. */
#ifndef PEAL_SCHEDULER_GEOMETRY_GEOMETRY_H
#define PEAL_SCHEDULER_GEOMETRY_GEOMETRY_H

#include "scheduler/view/compilation.h"

enum { PEAL_BOXES = 2 * PEAL_AXES + 1 }; /* most disjoint boxes that points are made of */

/* A list of disjoint boxes. */
typedef struct box_list {
    int count;
    peal_box box[PEAL_BOXES];
} box_list;

/* ---- shape.c ---- */

typedef struct field_shape {
    int axis_count;
    int64_t size[PEAL_AXES];  /* points along the axis, all ranks: coarsened and staggered */
    int64_t whole[PEAL_AXES]; /* points before coarsening and staggering: what is cut */
    int64_t halo[PEAL_AXES][2];
    int64_t align[PEAL_AXES], stagger[PEAL_AXES], coarsen[PEAL_AXES];
    const int64_t *cut[PEAL_RANK_AXES]; /* the topology's; NULL: equal parts */
    bool replicated;                    /* each rank's part is all of it */
} field_shape;

peal_status amount_of(const pass_context *pass, const peal_scope *scope, const peal_amount *amount,
                      int64_t out[PEAL_AXES][2]);
peal_status shape_of(const common_input *c, const pass_context *pass, const peal_scope *scope,
                     int array, field_shape *out);
/* Ranks among which an axis of a field is cut. */
int ranks_along(const common_input *c, int array, int axis);
/* The part of the rank at a position along the axis of the topology, which has so many ranks. */
void part_along(const field_shape *shape, int axis, int position, int ranks, int64_t *lo,
                int64_t *hi);

/* ---- cuts.c ---- */

/* What decides whether an axis may be cut, but for tiles. */
typedef struct cut_rules {
    field_shape *shape; /* by array: of fields whose shape is known */
    bool *known;
    bool uncut[PEAL_RANK_AXES]; /* some field lacks the axis */
} cut_rules;

void read_cut_rules(const common_input *c, const pass_context *pass, cut_rules *out);
/* 0: some field lacks an axis that is cut; 1: some tile is larger than a part; 2: neither. */
int cut_suits(const common_input *c, const cut_rules *rules, const int dims[PEAL_RANK_AXES]);
/* Reports every field and tile that the dims of the job do not suit. */
peal_status check_cuts(const common_input *c, const pass_context *pass);

/* ---- given_cuts.c ---- */

/* The cuts that the topology gives, and the dims that follow; other dims are left alone. */
peal_status read_given_cuts(common_input *c, const pass_context *pass, int dims[PEAL_RANK_AXES]);
/* Whether they suit every field of the axis. */
peal_status check_given_cuts(const common_input *c, const pass_context *pass,
                             const cut_rules *rules);

/* ---- topology.c ---- */

peal_status choose_dims(common_input *c, const pass_context *pass);
/* The rank at position + direction, or -1: nobody. */
int neighbour(const common_input *c, const int position[PEAL_RANK_AXES],
              const int direction[PEAL_RANK_AXES]);
/* The neighbours of a rank in all directions (13: itself); -1: nobody. */
void find_neighbours(const common_input *c, int rank, int peer[27]);
/* Whether there is a neighbour (perhaps myself) below (side 0) or above (side 1) along an axis of a
 * field, who owns points in its halo. */
bool has_neighbour(const common_input *c, const rank_view *v, int array, int axis, int side);
/* Who owns a field's halo points in a direction; -1: nobody else. */
int halo_owner(const common_input *c, const rank_view *v, int array,
               const int direction[PEAL_RANK_AXES]);

/* ---- boxes.c ---- */

/* my halo points in a direction (halo amounts given), and which of my points the neighbour there
 * has in its halo */
peal_box halo_box(const rank_view *v, int array, const int64_t amount[PEAL_AXES][2],
                  const int *direction);
peal_box border_box(const rank_view *v, int array, const int64_t amount[PEAL_AXES][2],
                    const int *direction);
void subtract_box(const peal_box *from, const peal_box *what, box_list *out);
/* What tiles that visit a box touch. */
peal_box reach_range(const peal_reach *reach, const peal_box *box, const peal_box *stored);
/* The points of a piece in the receiver's coordinates. */
peal_box piece_target(const peal_piece *piece);

/* ---- points.c ---- */

peal_status ranges_of(const pass_context *pass, const peal_scope *scope, const peal_ranges *ranges,
                      peal_box *out);
peal_status direction_of(const pass_context *pass, const peal_scope *scope,
                         const peal_direction *direction, int out[PEAL_RANK_AXES]);
/* The points of a field that lie next to the ghost box of `points`, as many as it is wide; along
 * axes in which the box doesn't lie outside: none. */
peal_status beside_ghosts(const common_input *c, const pass_context *pass, const rank_view *v,
                          const peal_points *points, int array, peal_box *out);
peal_status points_of(const common_input *c, const pass_context *pass, const rank_view *v,
                      const peal_points *points, box_list *out);
/* An array's axes, without that of a field's components. */
int axes_of_points(const common_input *c, const rank_view *v, int array);
/* Of boxes of a field's points, what a task visits: points, not their components. */
void leave_components(const common_input *c, const peal_points *points, box_list *list);

/* ---- exchange_boxes.c ---- */

/* What is wrong with an exchange, whoever its neighbours are. */
peal_status check_exchange(const common_input *c, const pass_context *pass, const rank_view *v,
                           const peal_statement *s);
/* The halo boxes by direction (x + 1 + 3 * (y + 1) + 9 * (z + 1)) that an item of an exchange
 * fills; empty: none. */
peal_status exchange_boxes(const common_input *c, const pass_context *pass, const rank_view *v,
                           const peal_exchange_item *item, peal_box box[27]);

/* ---- layout.c, swaps.c ---- */

/* Bytes: what caches move at a time, on CPUs two lines at once. */
enum { MEMORY_LINE = 128 };

peal_status set_dense_layout(const pass_context *pass, peal_layout *layout, const peal_box *stored,
                             peal_type type, peal_source source, const char *name);
peal_status make_geometry(const common_input *c, const pass_context *pass, rank_view *v);
/* Whether arrays that are swapped are alike on a rank. */
peal_status check_swaps(const common_input *c, const pass_context *pass, const rank_view *v);

#endif
