/* Memory of a GPU, for tests that an application's arrays lie there: by the driver alone. */
#ifndef PEAL_TESTS_RUNTIME_DEVICE_MEMORY_H
#define PEAL_TESTS_RUNTIME_DEVICE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

/* Of the device that peal gives to a process of this host. False: there is no driver. */
bool device_memory_open(int process, int processes);
void *device_memory_take(size_t bytes);
void device_memory_give(void *memory);
/* A stream that does not wait for the default one, nor the other way round; it is never destroyed.
 */
void *device_memory_stream(void);
/* A look at the stream: the stand-in of the driver goes on in calls only. */
void device_memory_look(void *stream);
/* Once all work on the device has been done. */
bool device_memory_read(void *to, const void *from, size_t bytes);
bool device_memory_write(void *to, const void *from, size_t bytes);
/* While other work may go on: by a stream of its own. */
bool device_memory_write_beside(void *to, const void *from, size_t bytes);

#endif
