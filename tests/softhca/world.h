/* A software adapter under the unmodified libibverbs and libmlx5: what its two halves share.
 *
 * The control half (device.c, commands.c) is preloaded into each process. It stands where the
 * kernel's device stands, and writes down here what is created; it moves nothing. The data half
 * (adapter.c, memory.c) looks at the registers, reads records and entries out of the processes,
 * moves data, and writes completions: in a thread of each process, or in a process of its own,
 * which goes on while all others are stopped. The world is a file that all of them map; registers
 * are pages of it. */
#ifndef TESTS_SOFTHCA_WORLD_H
#define TESTS_SOFTHCA_WORLD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    HCA_REGIONS = 4096,
    HCA_RINGS = 1024,
    HCA_QUEUES = 1024,
    HCA_PAGES = 8192, /* of registers */
    HCA_PAGE_BYTES = 4096,
    HCA_REGISTER_BYTES = 512, /* two halves, which are stored to in turn */
    HCA_REGISTERS = 4,        /* a page */
    HCA_REGISTER_FIRST = 0x800,
    HCA_ENTRY_BYTES = 64, /* of a send queue's basic block, and of a completion */
    HCA_QUEUE_NUMBER = 0x1000,
    HCA_WAITING = 16, /* entries that are not acknowledged, at most */
    HCA_REGISTERS_A_CONTEXT = 512
};

/* `used` of an object. TAKEN: not yet filled in; CLOSING: the data half lets go of it. */
enum { HCA_FREE, HCA_TAKEN, HCA_USED, HCA_CLOSING };

/* Registered memory. Its key: number + 1, and the times that the place has been taken. */
typedef struct hca_region {
    _Atomic uint32_t used;
    uint32_t generation;
    int32_t pid;
    uint32_t access;
    uint64_t address, bytes;
} hca_region;

/* A completion ring. */
typedef struct hca_ring {
    _Atomic uint32_t used;
    uint32_t generation;
    int32_t pid;
    uint32_t entries;
    uint64_t buffer, record; /* record: the consumer's */
    uint32_t produced;       /* by the data half */
} hca_ring;

/* An entry that has been executed and is not yet acknowledged: the adapter may fetch it again. */
typedef struct hca_unacknowledged {
    uint16_t number;
    uint8_t syndrome;
    bool completes;
    uint32_t opcode, bytes;
    uint32_t fetched; /* bytes of it that are kept */
    unsigned char copy[HCA_ENTRY_BYTES];
} hca_unacknowledged;

typedef struct hca_queue {
    _Atomic uint32_t used;
    uint32_t generation;
    int32_t pid;
    uint32_t number;
    int ring;
    uint32_t entries;
    uint64_t buffer, record;
    uint32_t page, offset;  /* of its register */
    _Atomic uint32_t state; /* enum ibv_qp_state */
    uint32_t peer, timeout, retries, access, mtu;
    uint32_t first_sent, first_taken; /* packet numbers */
    /* By the data half: entries executed, and up to which it was told to. */
    uint16_t executed, rung;
    _Atomic uint32_t seen; /* by_steps: the record as it was at the last store to the register */
    uint16_t first_waiting, waiting; /* of these */
    int64_t worked_ns;               /* when the last entry was executed; only if it is late */
    int64_t tried_ns; /* since when nobody has answered to the next entry; 0: it was not tried */
    bool is_resent;   /* the next entry was lost, and has been sent again */
    hca_unacknowledged wait[HCA_WAITING];
} hca_queue;

typedef struct hca_counts {
    _Atomic uint64_t doorbells, entries, bytes, completions;
    _Atomic uint64_t wrong;       /* what an adapter must not see, each told on stderr */
    _Atomic uint64_t after_error; /* entries that were rung for on a queue that had failed */
} hca_counts;

/* What kind of adapter it is. */
typedef struct hca_form {
    bool by_threads;
    bool by_steps; /* stores to registers go one at a time, each looked at before the next */
    bool is_slow;  /* the adapter rests between entries */
    bool is_late;  /* acknowledgements are: completions come late, and entries are fetched again */
    bool shuffles; /* packets of a message arrive in any order, some of them twice */
    uint64_t fails_at;   /* this entry ends its queue with an error; 0: none */
    uint64_t dies_at;    /* behind this entry the adapter does nothing more; 0: never */
    uint64_t downs_at;   /* behind this entry its port is down; 0: never */
    uint64_t refuses;    /* this registration of memory is; 0: none */
    uint64_t loses;      /* of so many entries one is lost once, and sent again; 0: none */
    uint64_t most_bytes; /* that a message may have, as its port says; 0: 1 GiB */
} hca_form;

typedef struct hca_world {
    _Atomic uint32_t next_page;  /* where a free one is looked for first */
    _Atomic bool is_down;        /* the port */
    _Atomic bool is_cut;         /* the path: no packet arrives */
    _Atomic uint64_t registered; /* so many times memory was, or would have been */
    hca_form form;
    hca_counts counts;
    hca_region region[HCA_REGIONS];
    hca_ring ring[HCA_RINGS];
    hca_queue queue[HCA_QUEUES];
    _Atomic int32_t owner[HCA_PAGES]; /* of the pages: a process; 0: none */
    _Alignas(HCA_PAGE_BYTES) unsigned char page[HCA_PAGES][HCA_PAGE_BYTES];
} hca_world;

/* The folder of the world: `world`, and `sys`, which libibverbs takes for sysfs. */
#define HCA_FOLDER "SOFTHCA"

/* NULL, and errno: it cannot be mapped. */
hca_world *hca_open_world(const char *folder);

/* ---- the data half ---- */

/* Takes back what processes that have ended have left. */
void hca_sweep(hca_world *world);

/* One turn over the queues of a process, or of all (0); false: there was nothing to do. One thread
 * at a time for a queue. */
bool hca_turn(hca_world *world, int32_t pid);

/* Tells of what an adapter must not see, and counts it. */
__attribute__((format(printf, 2, 3))) void hca_wrong(hca_world *world, const char *format, ...);

/* ---- memory.c: memory of processes; false: it is not there ---- */

/* An object whose memory is looked at, and since when: mappings are kept as long as it is the same.
 */
typedef enum hca_kind {
    HCA_OF_REGION,
    HCA_OF_RING,
    HCA_OF_RING_RECORD,
    HCA_OF_QUEUE,
    HCA_OF_QUEUE_RECORD,
    HCA_KINDS
} hca_kind;

typedef struct hca_range {
    hca_kind kind;
    uint32_t number, generation;
    int32_t pid;
    uint64_t address, bytes;
} hca_range;

/* Shared memory is mapped, so that words are stored whole; what is this process's is at hand; the
 * rest goes by the kernel's copies, which take stopped processes, too. */
bool hca_read(const hca_range *range, uint64_t address, void *to, size_t bytes);
bool hca_write(const hca_range *range, uint64_t address, const void *from, size_t bytes);
/* The word before; of a big-endian word in the entry, in the order of the host. */
bool hca_add(const hca_range *range, uint64_t address, uint64_t value, uint64_t *before);

#endif
