/* Two ends of a connection over the adapter, as a program of verbs has them: for tests. */
#ifndef TESTS_SOFTHCA_ENDS_H
#define TESTS_SOFTHCA_ENDS_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

enum { END_DEPTH = 32, END_RING = 64 };

typedef struct end {
    struct ibv_context *device;
    struct ibv_pd *domain;
    struct ibv_cq *ring;
    struct ibv_qp *queue;
    struct ibv_mr *memory;
    unsigned char *at;
    uint64_t bytes;
} end;

/* What the other end must know. */
typedef struct card {
    uint32_t queue, key;
    uint64_t at;
} card;

bool has_device(void);
struct ibv_context *open_device(void);
/* device NULL: opens it. Registers bytes of shared memory at `at`. */
void open_end(end *e, struct ibv_context *device, void *at, uint64_t bytes, uint32_t inlined);
card card_of(const end *e);
void connect_end(end *e, const card *other);
/* The same once more, with another first packet than the other end sends. */
void connect_again(end *e, const card *other, uint32_t first_packet);
void close_end(end *e);

/* bytes from an offset here to one there, and an 8-byte word behind them, inline; signalled: the
 * word's entry. bytes 0: the word alone. */
int put(end *e, const card *to, uint64_t from, uint64_t there, uint32_t bytes, uint64_t word_at,
        uint64_t word, bool signalled);
/* Adds to a word there; the word before comes back at an offset here. */
int add(end *e, const card *to, uint64_t word_at, uint64_t value, uint64_t back, bool signalled);
/* Waits for a completion; its status. */
enum ibv_wc_status reap(end *e, uint64_t *id);

#endif
