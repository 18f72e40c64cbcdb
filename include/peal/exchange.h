/* A halo exchange alone, for applications that keep their own loop: no task is declared.
 *
 *     peal_halo_desc desc = {.size_bytes = sizeof(desc), .dims = {2, 1, 1}, .periodic = {1, 1, 1},
 *                                .axis_count = 3, .extent = {24, 12, 12}, .width = {1, 1, 1},
 *                                .own_origin = {12 * rx, 0, 0}, .own_extent = {12, 12, 12},
 *                                .field_count = 1, .field = {{.type = PEAL_F64, .data = u}}};
 *     peal_exchange_create(session, &desc, &exchange);
 *     for (...) {
 *         peal_exchange_start(exchange, NULL);
 *         interior();
 *         peal_exchange_wait(exchange);
 *         border();
 *     }
 *     peal_exchange_destroy(exchange);
 *
 * An exchange gives every halo point (corners included) that another rank owns, or that is an image
 * beyond a periodic end, its owner's value. Halo points beyond an end that is not periodic are left
 * alone. Start and wait run on the calling thread and neither allocate, lock nor call the system
 * (but for the back-off of a long wait).
 *
 * With fields in a GPU's memory both calls put their half of the exchange onto a stream of the
 * application and return: start sends the border points as the stream's work so far leaves them,
 * what the application puts onto the stream after wait sees the halo. Nothing waits for the host.
 * Work that is put onto the stream between the two runs while messages travel. */
#ifndef PEAL_EXCHANGE_H
#define PEAL_EXCHANGE_H

#include <peal/session.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { PEAL_EXCHANGE_FIELDS = 16 /* most fields of an exchange */ };

/* One array of every rank: its part of the grid with `halo` more points at each end of each axis, x
 * contiguous. */
typedef struct peal_exchange_field {
    peal_type type;
    /* The caller's memory: the first stored point (the lowest corner, halo included). It stays the
     * caller's and must stay valid until destroy. Of a GPU: device memory of any kind (cudaMalloc,
     * a pool, by handles) of this process's GPU, or managed memory; neighbours' faces arrive in
     * memory of peal's and are unpacked from there. NULL: peal allocates (zeroed) where neighbours
     * can store faces directly; ask peal_exchange_view. */
    void *data;
    int64_t bytes; /* that the caller has there: too few for extent, halo and stride are refused; 0:
                      unknown */
    /* In elements, of axes 1, 2, 3; 0: dense. Only of the caller's memory. */
    int64_t stride[PEAL_AXES];
    int halo[PEAL_AXES]; /* stored at each end, by axis; all 0: the exchange's width */
} peal_exchange_field;

/* What is exchanged. Equal in all processes, but for where data lies, stride and
 * what is a rank's own. */
typedef struct peal_halo_desc {
    size_t size_bytes;        /* sizeof(peal_halo_desc) */
    int ranks;                /* in all; 0: one a process (needed when the caller lends memory) */
    int dims[PEAL_RANK_AXES]; /* ranks along x, y, z; 0: chosen. Rank = rx + Rx * (ry + Ry * rz) */
    bool periodic[PEAL_RANK_AXES];
    int axis_count;            /* axes of the fields, 1 to 4; those beyond the third aren't cut */
    int64_t extent[PEAL_AXES]; /* of the global grid, without halo */
    /* Each axis is cut into as many parts as it has ranks, the first (extent mod ranks) of them one
     * point longer. */
    /* What this process's rank owns: global coordinates of its first point, and its points along
     * each axis, both without halo. They are compared with that cut. Needed with lent memory, of
     * which nothing else tells how it is cut; else all 0 will do. */
    int64_t own_origin[PEAL_AXES], own_extent[PEAL_AXES];
    int width[PEAL_AXES]; /* points received at each end of each axis */
    int field_count;
    peal_exchange_field field[PEAL_EXCHANGE_FIELDS];
    const char *backend;   /* "host", "cuda"; NULL or "auto": cuda if lent memory is a GPU's, else
                              host. "cuda" with fields that peal allocates: they are device memory */
    const char *lowering;  /* of cuda, as in peal_plan_options; NULL: peal chooses */
    const char *transport; /* the same */
} peal_halo_desc;

/* Where a field of a rank of this process lies. data is the first stored point; the first owned
 * one is `halo` points further along each axis. */
typedef struct peal_exchange_array {
    void *data;
    int64_t stride[PEAL_AXES]; /* elements */
    int64_t origin[PEAL_AXES]; /* global coordinates of the first owned point */
    int64_t extent[PEAL_AXES]; /* owned points by axis */
    int64_t halo[PEAL_AXES];   /* stored beyond, at each end */
} peal_exchange_array;

typedef struct peal_exchange peal_exchange;

/* Prepares an exchange that can be started any number of times. Collective; all processes return
 * the same status. PEAL_STATUS_USAGE: a descriptor that makes no sense; PEAL_STATUS_SPEC: sizes
 * that don't fit (more ranks than points, a halo wider than a part); PEAL_STATUS_ENVIRONMENT: too
 * little memory or no path to a neighbour. */
#define peal_exchange_create(session, desc, out)                                                   \
    peal_exchange_create_at((session), (desc), PEAL_HERE, (out))
peal_status peal_exchange_create_at(peal_session *session, const peal_halo_desc *desc,
                                    peal_source source, peal_exchange **out);

/* Sends my border points. They may be read and halo points be ignored, but neither written, until
 * the wait. Every rank starts equally often. stream: NULL on the host; on a GPU a CUstream or
 * cudaStream_t of this process's GPU, NULL being CUDA's default stream. It must not be capturing.
 * Another stream than that of the start before is made to wait for that exchange; the application's
 * own work on the two is for it to order. PEAL_STATUS_USAGE: started and not waited for, or a
 * stream that cannot be used; else as peal_exchange_wait. */
peal_status peal_exchange_start(peal_exchange *exchange, void *stream);

/* On the host: returns once all halo points of this process's ranks have arrived, or the job was
 * aborted (then with the first cause's status). On a GPU: the stream of the start waits; the call
 * returns at once, with the status of what was known by then. A neighbour that does not come ends
 * the stream's waiting after the session's deadline, an abort within moments; halo points are
 * undefined then, the next call on the exchange or peal_session_status says why. */
peal_status peal_exchange_wait(peal_exchange *exchange);

/* Where field `field` of `rank` (one of this process; -1: its first) lies. */
peal_status peal_exchange_view(const peal_exchange *exchange, int rank, int field,
                               peal_exchange_array *out);
/* Ranks of this process: [*first, *end). */
void peal_exchange_ranks(const peal_exchange *exchange, int *first, int *end);
/* One line: ranks, layout, messages and bytes a start, transports, hash. */
void peal_exchange_describe(const peal_exchange *exchange, char *text, size_t bytes);

/* Agrees with the others that all exchanges were done, and frees it. Collective unless the job was
 * aborted. NULL is fine (and then not collective). PEAL_STATUS_OK only if every process did as many
 * exchanges, all complete. */
peal_status peal_exchange_destroy(peal_exchange *exchange);

#ifdef __cplusplus
}
#endif
#endif
