/* Files in memory that only this user opens: for memory that processes share. */
#ifndef PEAL_BASE_MEMORY_FILE_H
#define PEAL_BASE_MEMORY_FILE_H

/* memfd_create with these flags, mode 0600 and, where the system knows it, never to be executed. -1
 * and errno on failure. */
int peal_memory_file(const char *name, unsigned flags);

#endif
