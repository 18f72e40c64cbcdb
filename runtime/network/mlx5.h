/* Own rings on an mlx5 adapter, for the engine `mlx5`: each put has a queue of its own, whose
 * entries are written here and not by libmlx5. So they can be written ahead, and be rung for by
 * anybody who can store two words. */
#ifndef PEAL_RUNTIME_NETWORK_MLX5_H
#define PEAL_RUNTIME_NETWORK_MLX5_H

#include "runtime/network/mlx5_entries.h"
#include "runtime/network/verbs.h"

#include <infiniband/mlx5dv.h>

enum {
    MLX5_ARENA_BYTES = 128 << 20, /* reserved; what is not used takes no memory */
    MLX5_RING_BYTES = 4 << 20,    /* for the rings of a plan with a process */
    MLX5_MOST_ENTRIES = 8192,     /* of a ring */
    MLX5_LEAST_ENTRIES = 64,
    MLX5_PAGE_BYTES = 4096 /* of registers, and of records */
};

/* ---- mlx5_memory.c ---- */

typedef struct mlx5_library {
    __typeof__(mlx5dv_is_supported) *mlx5dv_is_supported;
    __typeof__(mlx5dv_init_obj) *mlx5dv_init_obj;
    __typeof__(mlx5dv_set_context_attr) *mlx5dv_set_context_attr;
    const char *reason; /* why it cannot be used; NULL: it can */
} mlx5_library;

const mlx5_library *mlx5_get(void);

/* Pages that queues, completion rings and records lie in: one shared mapping, so that one
 * registration makes all of them known to a device, and tests can look into it. */
typedef struct mlx5_arena {
    unsigned char *at;
    unsigned char *taken; /* by page: a run begins (1), goes on (2); 0: it is free */
    pthread_mutex_t lock;
} mlx5_arena;

/* NULL: no memory. */
mlx5_arena *mlx5_arena_open(void);
void mlx5_arena_close(mlx5_arena *arena);
/* From now on libmlx5 takes memory of this context from there; false: it does not. */
bool mlx5_arena_serves(mlx5_arena *arena, struct ibv_context *context);

/* ---- mlx5.c ---- */

/* The queue of one put. Message m = 1, 2, ... has entries (m - 1) * each to m * each - 1; the last
 * of them is signalled. A message is built only where the one before in its places has arrived. */
typedef struct mlx5_ring {
    struct ibv_cq *completions;
    struct ibv_qp *queue;
    mlx5_queue own;
    volatile mlx5_u32 *record, *taken;
    mlx5_u8 *bell; /* its register's halves are stored to in turn */
    mlx5_u32 bell_bytes;
    const mlx5_u8 *completion;
    mlx5_u32 completion_count, each;
    uint64_t built, due, done; /* messages; what is rung for is what the record says */
    bool is_rung_for;          /* by others: what is due is not to be rung for here */
    uint32_t first_packet;
} mlx5_ring;

/* Makes the rings of a plan's part, joins them with the other end's. */
peal_status mlx5_make_rings(verbs_end *end, peal_diagnostics *diagnostics);
void mlx5_free_rings(verbs_end *end);
/* With the link's lock. So many messages more of a put are due; posts them, as far as its ring has
 * room. */
void mlx5_post(verbs_end *end, int number, uint64_t more);
/* The rest of the engine's table for those who ring elsewhere, with the link's lock. */
void mlx5_doorbell_of(verbs_end *end, int number, peal_network_doorbell *out);
bool mlx5_write_ahead(verbs_end *end, int number, uint64_t message);
int mlx5_stores(verbs_end *end, int number, uint64_t message,
                peal_network_store out[PEAL_NETWORK_STORES]);
/* What is written ahead and rung for from now on is not sent: the queues take no more. */
void mlx5_silence(verbs_end *end);
/* Takes completions of all rings; true: everything that was rung for has arrived, or never will. */
bool mlx5_reap(verbs_end *end);

#endif
