/* A halo exchange alone, for applications that keep their own loop: no task is declared.
 *
 *     peal_exchange *halo;
 *     peal_exchange_create(session, &halo, .axis_count = 2,
 *                          .lo = {x0, y0}, .hi = {x1, y1}, .periodic = {true, true},
 *                          .field = {{PEAL_F64, .data = {u}, .width = {{1, 1}, {1, 1}}}});
 *     for (...) {
 *         peal_exchange_start(halo, 0, NULL);
 *         interior();
 *         peal_exchange_wait(halo);
 *         border();
 *     }
 *     peal_exchange_destroy(halo);
 *
 * Each process states the points that it owns: lo <= p < hi in coordinates of the whole grid. How
 * many processes there are along each axis, where the axes are cut and who is whose neighbour
 * follows; cuts may be uneven, and processes lie in the grid in any order.
 *
 * An exchange gives every halo point (corners included) that another process owns, or that is an
 * image beyond a periodic end, its owner's value. Of halo points beyond an end that is not
 * periodic, those beside my own points are left alone, and the others have what the neighbour has
 * there. Start and wait run on the calling thread and neither allocate, lock nor call the system
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

/* A field: the points that this process owns, and a halo around them. Axis 0 is the one whose
 * points lie side by side: of a C array u[nz][ny][nx] the last, of Fortran's u(nx, ny, nz) the
 * first. */
typedef struct peal_halo_field {
    peal_type type;
    int components; /* values of a point, side by side (an array of structs); 0: 1 */
    /* [0]: the caller's memory: its first stored point (the lowest corner, halo included). It stays
     * the caller's and must stay valid until destroy. Of a GPU: device memory of any kind
     * (cudaMalloc, a pool, by handles) of this process's GPU, or managed memory; neighbours' faces
     * arrive in memory of peal's and are unpacked from there. [1]: another array that is alike, of
     * fields that are computed from one into the other: a start says which of the two; NULL: there
     * is none. Both NULL: peal allocates (zeroed) where neighbours can store faces directly;
     * peal_exchange_view says where and with which strides, as long rows are padded. In all
     * processes alike. */
    void *data[2];
    int64_t bytes; /* that the caller has at each data: too few for what is stored are refused, and
                      without strides too many, too; 0: unknown */
    /* The rest in points, by axis. */
    int64_t stride[PEAL_AXES]; /* of the caller's memory; 0: dense */
    int halo[PEAL_AXES][2];    /* stored below and above in the caller's memory; all 0: as width */
    int width[PEAL_AXES][2];   /* received below and above: equal in all processes */
    int stagger[PEAL_AXES];    /* more than the box at the whole grid's upper end, unless periodic:
                                  1 for values on faces; equal in all processes */
} peal_halo_field;

/* What is exchanged. axis_count, periodic, star, types, components, widths and staggers are equal
 * in all processes. */
typedef struct peal_halo_desc {
    size_t size_bytes;  /* sizeof(peal_halo_desc) */
    peal_source source; /* the caller's place (PEAL_HERE), for messages */
    int axis_count;     /* axes of the fields, 1 to 4; those beyond the third aren't cut */
    /* The points that this process owns: lo <= p < hi in the whole grid's coordinates, which may
     * begin anywhere; without halo. */
    int64_t lo[PEAL_AXES], hi[PEAL_AXES];
    int64_t extent[PEAL_AXES]; /* points of the whole grid, to be compared with what all boxes make
                                  up; 0: not compared */
    bool periodic[PEAL_RANK_AXES];
    bool star; /* no corners and no edges: halo points along one axis only */
    peal_halo_field field[PEAL_EXCHANGE_FIELDS]; /* up to the first with neither width nor data */
    const char *backend;   /* "host", "cuda"; NULL or "auto": cuda if the caller's memory is a
                              GPU's, else host. "cuda" with fields that peal allocates: they are
                              device memory */
    const char *lowering;  /* of cuda, as in peal_plan_options; NULL: peal chooses */
    const char *transport; /* the same */
} peal_halo_desc;

/* Where a field of this process lies. */
typedef struct peal_exchange_array {
    void *data; /* the first stored point; the first owned one is halo[k][0] points further along
                   each axis */
    int64_t stride[PEAL_AXES];            /* points */
    int64_t lo[PEAL_AXES], hi[PEAL_AXES]; /* owned, staggered points included */
    int halo[PEAL_AXES][2];               /* stored below and above */
} peal_exchange_array;

typedef struct peal_exchange peal_exchange;

/* Prepares an exchange that can be started any number of times. Collective; all processes return
 * the same status. PEAL_STATUS_USAGE: a descriptor that makes no sense, boxes that are no grid
 * (E362 names two processes or a point), a halo wider than a neighbour's box, memory that is too
 * small, other options in another process (E354); PEAL_STATUS_SPEC: axes or fields that differ
 * between processes (E353), more than can be addressed; PEAL_STATUS_ENVIRONMENT: too little memory
 * or no path to a neighbour; PEAL_STATUS_DEADLINE: some process did not call it. */
peal_status peal_exchange_create_desc(peal_session *session, const peal_halo_desc *desc,
                                      peal_exchange **out);
#ifndef __cplusplus
/* peal_exchange_create(session, &exchange, .axis_count = 2, .lo = {...}, ...) */
#define peal_exchange_create(session, out, ...)                                                    \
    peal_exchange_create_desc((session), PEAL_DESC(peal_halo_desc, __VA_ARGS__), (out))
#endif

/* Sends my border points, of each field from data[buffer] (0 where there is one only). They may be
 * read and halo points be ignored, but neither written, until the wait. Every process starts
 * equally often, with the same buffers. stream: NULL on the host; on a GPU a CUstream or
 * cudaStream_t of this process's GPU, NULL being CUDA's default stream. It must not be capturing.
 * Another stream than that of the start before is made to wait for that exchange; the application's
 * own work on the two is for it to order. PEAL_STATUS_USAGE: started and not waited for, a buffer
 * that is not there, or a stream that cannot be used; else as peal_exchange_wait. */
peal_status peal_exchange_start(peal_exchange *exchange, int buffer, void *stream);

/* On the host: returns once all halo points have arrived, or the job was aborted (then with the
 * first cause's status). On a GPU: the stream of the start waits; the call returns at once, with
 * the status of what was known by then. A neighbour that does not come ends the stream's waiting
 * after the session's deadline, an abort within moments; halo points are undefined then, the next
 * call on the exchange or peal_session_status says why. */
peal_status peal_exchange_wait(peal_exchange *exchange);

/* Where field `field` lies, its data[0]. */
peal_status peal_exchange_view(const peal_exchange *exchange, int field, peal_exchange_array *out);
/* One line: processes, layout, messages and bytes a start, transports, hash. */
void peal_exchange_describe(const peal_exchange *exchange, char *text, size_t bytes);

/* Agrees with the others that all exchanges were done, and frees it. Collective unless the job was
 * aborted. NULL is fine (and then not collective). PEAL_STATUS_OK only if every process did as many
 * exchanges, all complete. */
peal_status peal_exchange_destroy(peal_exchange *exchange);

#ifdef __cplusplus
}
#endif
#endif
