/* Room of a thread's own, on the heap. */
#include "base/thread_room.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

typedef struct rooms {
    void *of[PEAL_ROOMS];
} rooms;

static pthread_key_t key;
static bool has_key;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void free_rooms(void *memory)
{
    rooms *own = memory;
    for (int i = 0; i < PEAL_ROOMS; i++)
        free(own->of[i]);
    free(own);
}

static void make_key(void)
{
    has_key = pthread_key_create(&key, free_rooms) == 0;
}

void *peal_thread_room(peal_room room, size_t bytes)
{
    pthread_once(&once, make_key);
    rooms *own = has_key ? pthread_getspecific(key) : NULL;
    if (!own && has_key) {
        own = calloc(1, sizeof(*own));
        if (own && pthread_setspecific(key, own)) {
            free(own);
            own = NULL;
        }
    }
    if (own && !own->of[room])
        own->of[room] = calloc(1, bytes);
    return own ? own->of[room] : NULL;
}
