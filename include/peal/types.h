/* The few types that everything shares: element types, places in a source, boxes of points. */
#ifndef PEAL_TYPES_H
#define PEAL_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    PEAL_AXES = 4,     /* axes of a field: x y z and one that is never cut */
    PEAL_RANK_AXES = 3 /* axes of a topology */
};

/* Type of the elements of a field or buffer. */
typedef enum peal_type {
    PEAL_F64,
    PEAL_F32,
    PEAL_I32,
    PEAL_I64,
    PEAL_U8,
    PEAL_TYPE_COUNT
} peal_type;

/* Bytes of one element (8, 4, 4, 8, 1). */
size_t peal_type_bytes(peal_type type);
/* "f64", "f32", "i32", "i64", "u8". */
const char *peal_type_name(peal_type type);
/* "double", "float", "int32_t", "int64_t", "uint8_t". */
const char *peal_type_c_name(peal_type type);

/* How the parts of a reduction are combined. min and max: NaN wins. */
typedef enum peal_combine { PEAL_SUM, PEAL_MIN, PEAL_MAX } peal_combine;

/* A place in a spec or in a program: line and column count from 1; 0: unknown. */
typedef struct peal_source {
    const char *file;
    int line;
    int column;
} peal_source;

/* Where it stands in the application, for messages. */
#ifdef __cplusplus
#define PEAL_HERE (peal_source{__FILE__, __LINE__, 0})
#else
#define PEAL_HERE ((peal_source){__FILE__, __LINE__, 0})
#endif

/* A descriptor of a call: PEAL_DESC(peal_field_desc, .name = "u"). */
#ifndef __cplusplus
#define PEAL_DESC(type, ...) (&(type){.size_bytes = sizeof(type), .source = PEAL_HERE, __VA_ARGS__})
#endif

/* A box of points: lo <= p < hi on each of the first axis_count axes; the others are [0, 1). */
typedef struct peal_box {
    int axis_count;
    int64_t lo[PEAL_AXES];
    int64_t hi[PEAL_AXES];
} peal_box;

/* How a plan is executed. A mode never changes results. */
typedef enum peal_mode {
    PEAL_MODE_SERIAL, /* one event at a time in the whole job: the meaning of a graph */
    PEAL_MODE_SYNC,   /* launch, wait, send, wait: the shape of an MPI program */
    PEAL_MODE_STREAM, /* lanes run ahead of the host thread, ordered by dependences between ops */
    PEAL_MODE_GRAPH,  /* the same as one CUDA graph (not on the host backend) */
    PEAL_MODE_FUSED,  /* workers with a tile dispatcher, ordered by dependences between tiles */
    PEAL_MODE_COUNT
} peal_mode;

/* "serial", "sync", "stream", "graph", "fused". */
const char *peal_mode_name(peal_mode mode);

#ifdef __cplusplus
}
#endif
#endif
