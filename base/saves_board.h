/* The board on which the ranks of a job count the parts of files that they have written: memory
 * that processes share, and what may be asked of it. */
#ifndef PEAL_BASE_SAVES_BOARD_H
#define PEAL_BASE_SAVES_BOARD_H

#include <peal/plugin/graph.h>

#include <stdint.h>

typedef enum peal_saves_what {
    PEAL_SAVES_NAME = 1, /* value: proposes what new files are called; what they are */
    PEAL_SAVES_PART,     /* the rank has written its part of file number `value` */
    PEAL_SAVES_MOVED,    /* that file has its name now */
    PEAL_SAVES_LOOK,     /* how many of them have */
    PEAL_SAVES_FAILED    /* a part could not be written */
} peal_saves_what;

/* Of whoever saves; fixed sizes: they travel. */
typedef struct peal_saves_question {
    uint32_t what;
    int32_t save; /* the number of the statement among those that save a field */
    int32_t rank, reserved;
    uint64_t value;
} peal_saves_question;

typedef struct peal_saves_answer {
    uint64_t value;   /* of NAME and LOOK */
    uint32_t failed;  /* some part could not be written */
    uint32_t is_last; /* of PART: all parts are there, and this rank is to move the file */
} peal_saves_answer;

/* How many statements save a field. index, if not NULL: by statement, its number among them. */
int peal_saves_count(const peal_graph_data *graph, int *index);
/* Bytes of a board, zeroed at first. */
int64_t peal_saves_bytes(const peal_graph_data *graph, int ranks);
/* What a board of so many bytes says. Any thread or process; waits for nothing. */
peal_saves_answer peal_saves_tell(void *board, int64_t bytes, int ranks,
                                  const peal_saves_question *question);

#endif
