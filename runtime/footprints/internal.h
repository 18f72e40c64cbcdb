/* What looks at each tile: --check-footprints, in parts: memory with guards (guarded.c), what it is
 * filled with (fills.c), what a tile declares (views.c, rows.c), one run of it (run.c), what runs
 * show (check.c), the search for the point (search.c), the words (tell.c), and the plan that all of
 * it runs in (footprints.c); and --watch in mode serial (watch.c). */
#ifndef PEAL_RUNTIME_FOOTPRINTS_INTERNAL_H
#define PEAL_RUNTIME_FOOTPRINTS_INTERNAL_H

#include "backends/host/crash.h"
#include "runtime/bind/array_rows.h"
#include "runtime/footprints/footprints.h"
#include "runtime/memory/storage.h"

/* What lies where a tile declares nothing. No result is blind to all: NaN spreads through
 * arithmetic but loses comparisons, the huge ones win them, the finite one is absorbed by nothing,
 * zero and the real contents are what tests for equality see. Of integers: bits that complement
 * each other, and the ends of the range. */
typedef enum fill { FILL_REAL, FILL_ZERO, FILL_NAN, FILL_FINITE, FILL_HIGH, FILL_LOW, FILLS } fill;

enum { MOST_VIEWS = PEAL_CALL_VIEWS + PEAL_CALL_PARTIALS };

/* ---- guarded.c ---- */

/* A copy of one array, between zones with a pattern and, on the host, pages that nobody may touch.
 */
typedef struct guarded {
    unsigned char *base; /* first element */
    int64_t bytes;
    unsigned char *open, *end; /* what may be touched: zone, array, zone */
    /* the host's: guard, room, guard; NULL: memory of a device, which has zones alone */
    unsigned char *reserved;
    size_t reserved_bytes;
    unsigned char *room, *room_end;
    bool touched;   /* a guard was opened */
    bool read_only; /* stores fault */
    bool filled;    /* with the pattern of `type` */
    peal_type type;
    unsigned char *let;   /* the page that was made readable last */
    peal_storage storage; /* of a device */
} guarded;

/* How wide guards can be, in bytes, if there are so many arrays. */
int64_t guarded_width(int count);
/* Address space and, for a device, memory for arrays of up to `bytes`. */
peal_status guarded_create(const peal_memory_space *space, int64_t bytes, int64_t width,
                           peal_diagnostics *diagnostics, guarded *out);
void guarded_destroy(guarded *g);
/* Room for an array that lies at `real`, at the end of the memory: what is behind it is a guard,
 * but for what its alignment leaves. Nothing happens if it is there already. */
void guarded_place(guarded *g, const unsigned char *real, int64_t bytes);
/* Of the host: room for an array whose byte `edge` begins a page; whatever it held is gone.
 * protect: stores fault, but (allow) those into pages with these bytes. */
void guarded_place_edge(guarded *g, int64_t bytes, int64_t edge);
void guarded_protect(guarded *g);
void guarded_allow(guarded *g, int64_t offset, int64_t bytes);
/* From now on stores fault, or no longer. */
void guarded_set_writable(guarded *g, bool writable);
/* In a handler: opens the page if the address is within the guards, for reading first, then for
 * writing. *write: it was a store. */
bool guarded_fault(guarded *g, uintptr_t address, bool *write);
/* Closes guards that were opened. */
void guarded_close(guarded *g);

/* ---- fills.c ---- */

/* Memory outside of what is declared; what `write` finds in its own footprint. */
void fill_outside(unsigned char *memory, int64_t bytes, peal_type type, fill f);
void fill_old(unsigned char *memory, int64_t bytes, peal_type type, fill f);
bool is_old(const unsigned char *at, peal_type type, fill f);
/* Byte of the first element that isn't as fill_outside left it; -1: all are. */
int64_t first_broken(const unsigned char *memory, int64_t bytes, peal_type type, fill f);
/* Leaves other bytes on the stack below the caller each time. owner: the footprints. */
void fill_stack(void *owner);

/* ---- views.c ---- */

/* An access of a task, or a tile's part of a reduction. */
typedef struct checked_view {
    const char *name;
    const peal_schedule_array *array; /* its layout and type; of a part: `part` */
    const peal_task_access *access;   /* NULL: a part */
    peal_access_mode mode;
    int part_index;
    peal_schedule_array part;
} checked_view;

typedef struct statics statics;

typedef struct checked_task {
    peal_footprints *owner;
    const peal_schedule *schedule;
    const peal_schedule_task *task;
    peal_function full, bare; /* the real ones */
    void *user;
    checked_view *view;
    int view_count;
    bool tiles_are_free; /* peal may cut the task as it likes */
    bool bits_are_given; /* and points have equal bits in any tile */
    uint64_t calls;
    int64_t quiet_bytes; /* that the search for quiet stores has moved */
} checked_task;

/* False: no memory. */
bool views_create(checked_task *t);
/* First stored element in the real memory; NULL: the call has no such view. */
unsigned char *view_real(const checked_task *t, int view, const peal_call *call);
/* The boxes that a tile touches by a view, within what is stored. */
int view_boxes(const checked_task *t, int view, const peal_tile *tile,
               peal_box box[PEAL_CALL_VIEWS]);
void view_rows(const checked_task *t, int view, const peal_tile *tile,
               void (*visit)(void *, int64_t, int64_t), void *user);
bool view_declares(const checked_task *t, int view, const peal_tile *tile, int64_t element);
static inline int64_t view_element(const checked_task *t, int view)
{
    return (int64_t)peal_type_bytes(t->view[view].array->type);
}

/* ---- rows.c ---- */

/* What a visitor of rows (along x) knows; offsets are bytes behind the first stored element. */
typedef struct row_visit {
    unsigned char *to;
    const unsigned char *from, *real;
    peal_type type;
    fill fill;
    int64_t end;         /* row_old: bytes below get the pattern */
    int64_t found;       /* offset of the first that differs; -1: none */
    bool nans_are_alike; /* row_equal: whose a sum gets depends on how code is compiled */
} row_visit;

void row_copy(void *visit, int64_t offset, int64_t bytes);
void row_old(void *visit, int64_t offset, int64_t bytes);
void row_outside(void *visit, int64_t offset, int64_t bytes);
/* Elements of `to` and `from` that differ; row_compare: but for those that the kernel has left out,
 * of which `real` is what they were in `from`. */
void row_equal(void *visit, int64_t offset, int64_t bytes);
void row_compare(void *visit, int64_t offset, int64_t bytes);
/* Elements of `to` that aren't as fill_outside left them. */
void row_broken(void *visit, int64_t offset, int64_t bytes);

/* ---- check.c ---- */

typedef enum finding_kind {
    FINDING_NONE,
    FINDING_READ,
    FINDING_WRITE,
    FINDING_QUIET, /* a store that changes nothing */
    FINDING_FAULT, /* in a guard, or a store to what is only read */
    FINDING_CRASH,
    FINDING_UNSTEADY,
    FINDING_UNSTORED,
    FINDING_STATIC, /* the kernel's library has changed */
    FINDING_TILE    /* the point's value depends on the tile that it is in */
} finding_kind;

typedef struct finding {
    finding_kind kind;
    int view;        /* -1: none */
    int64_t element; /* behind the first stored one; may be outside of the array */
    fill fill;       /* that showed it */
    bool write;      /* FAULT */
    bool has_tile, has_point;
    int64_t point[PEAL_AXES];       /* of the tile: which touches it */
    peal_tile tile;                 /* has_point: that alone, as it was run */
    char text[PEAL_CRASH_TEXT / 2]; /* CRASH */
} finding;

struct peal_footprints {
    peal_plan *plan;
    peal_schedule *schedule; /* copies by hosted rank */
    peal_schedule_task **copy;
    checked_task **checked;
    bool watches;   /* --watch: tiles run where they are, and there are no shadows */
    bool *reported; /* by statement: one report of each task is enough */
    int findings;
    guarded shadow[MOST_VIEWS][FILLS]; /* of the task that runs */
    unsigned char *scratch;            /* outputs of a run */
    unsigned char *whole;              /* outputs of a tile whose points are looked at */
    guarded edge;                      /* of one view at a time */
    statics *statics;                  /* of the kernels' library */
    unsigned char *stack;              /* of handlers */
    const checked_task *current;       /* whose patterns the shadows have; NULL: nobody's */
    int64_t last_tile;
    bool scanned; /* everything, since the last tile */
    host_site site;
    unsigned turn;
    peal_trial trial;
    stack_t stack_before;
    /* of the run under way */
    const checked_task *running;
    fill running_fill;
    bool faulted, fault_writes;
    int fault_count;
    int fault_view;
    uintptr_t fault_address;
};

/* In the place of a task's function: call->user is the checked task. */
void check_call(const peal_call *call);
/* The run ends with this status. */
void end_run(const checked_task *t, peal_status status);
/* What the last launch has left far from its tiles. */
void check_rest(peal_footprints *f);

/* A tile; leaves the outputs of FILL_REAL in its shadow. True: something was found. */
bool check_tile(const checked_task *t, const peal_call *call, finding *out);
/* True; out: what was found. */
bool note(finding *out, finding_kind kind, const checked_task *t, int view, int64_t offset);
/* Keeps the outputs of FILL_REAL, each array behind the one before. */
void keep_outputs(const checked_task *t, const peal_call *call, unsigned char *kept);

/* Before a run, and whether the kernel has changed a static variable in it. */
void begin_statics(const checked_task *t);
bool find_static(const checked_task *t, finding *out);

/* ---- points.c ---- */

/* Where peal chooses the tiles, some points of a tile by themselves. */
bool check_points(checked_task *t, const peal_call *call, finding *out);

/* ---- quiet.c ---- */

/* After check_tile, whose outputs stay: a store outside the footprint of what is there already. */
bool find_quiet_store(checked_task *t, const peal_call *call, finding *out);

/* ---- statics.c ---- */

/* What the library of a function keeps in memory of its own. NULL: nothing, or it is peal's or the
 * application's; `good` false: no memory. */
statics *statics_create(peal_function function, bool *good);
/* Whether that has changed since it was last asked. */
bool statics_changed(statics *s);
void statics_destroy(statics *s);

/* ---- run.c ---- */

static inline bool is_output(const checked_task *t, int view)
{
    return t->view[view].mode != PEAL_READ_ACCESS;
}
/* For the shadow of `f`. */
row_visit visit_of(const checked_task *t, int view, fill f);
/* What the tile may read, and what it finds where it may only write. */
void put_inputs(const checked_task *t, const peal_call *call, fill f);
/* False: it has crashed, or touched a guard: see owner->trial, owner->faulted. */
bool run_tile(const checked_task *t, const peal_call *call, fill f);
/* From those of FILL_REAL. */
bool outputs_differ(const checked_task *t, const peal_call *call, fill f);
/* The footprint is as what surrounds it again. */
void settle(const checked_task *t, const peal_call *call, fill f);

/* ---- search.c ---- */

/* The outputs of FILL_REAL are in its shadow, those of `f` differ: which element is it? */
void find_read(const checked_task *t, const peal_call *call, fill f, finding *found);
/* Which point of the tile touches it, if that can be told. */
void find_point(checked_task *t, const peal_call *call, finding *found);
/* Axis k of tiles is cut at multiples of this. */
int64_t point_extent(const checked_task *t, int k);

/* ---- tell.c ---- */

void tell(const checked_task *t, const peal_tile *tile, const finding *found);
enum { TEXT = 160 };
/* "(rank 0, tile [0, 8) x [0, 4), step 3)", 2 * TEXT bytes. */
void print_site(const checked_task *t, const peal_tile *tile, bool has_tile, char *text);

/* ---- watch.c ---- */

/* In the place of a task's function: call->user is the checked task. */
void watch_call(const peal_call *call);

#endif
