/* The story of a counterexample: what happens on which rank, in order, by which line of the spec,
 * and which event hangs on which. Texts for people; the same as JSON and as a Graphviz digraph. */
#ifndef PEAL_BASE_STORY_H
#define PEAL_BASE_STORY_H

#include <peal/types.h>

#include <stdio.h>

enum { PEAL_STORY_EVENTS = 12, PEAL_STORY_LINKS = 24, PEAL_STORY_TEXT = 200 };

/* Steps that are none. */
enum { PEAL_STORY_SETUP = -1, PEAL_STORY_FINISH = -2 };

typedef struct peal_story_event {
    int rank;
    int64_t step; /* of the outermost loop; PEAL_STORY_* */
    peal_source source;
    char text[PEAL_STORY_TEXT];
} peal_story_event;

typedef struct peal_story_link {
    int from, to;    /* numbers of events */
    const char *why; /* "waits for": a literal */
} peal_story_link;

typedef struct peal_story {
    peal_story_event event[PEAL_STORY_EVENTS];
    int event_count;
    int left_out; /* events that found no room */
    peal_story_link link[PEAL_STORY_LINKS];
    int link_count;
} peal_story;

/* The event's number; -1: left out. */
int peal_story_add(peal_story *story, int rank, int64_t step, peal_source source,
                   const char *format, ...) __attribute__((format(printf, 5, 6)));
/* Nothing if one of the two was left out, or there is no room. */
void peal_story_connect(peal_story *story, int from, const char *why, int to);

/* A copy that owns the names of its files; NULL: no memory. */
peal_story *peal_story_copy(const peal_story *story);
void peal_story_destroy(peal_story *copy);

/* "step 3", "setup" or "finish". */
const char *peal_story_step(int64_t step, char text[32]);
/* A line an event: "    1. rank 0, step 3, line 9: TEXT; waits for 2". */
void peal_story_print(const peal_story *story, FILE *stream);
/* Nodes and edges of a digraph; their names begin with e<number>_. */
void peal_story_print_dot(const peal_story *story, int number, FILE *stream);

#endif
