/* Bytes of a fuzzer as a file that can be opened by name, in memory: nothing is left behind. */
#ifndef PEAL_TESTS_FUZZ_FILE_H
#define PEAL_TESTS_FUZZ_FILE_H

#include <stddef.h>
#include <stdint.h>

/* Its descriptor; the program ends if it cannot be had. path: "/proc/self/fd/N". */
int fuzz_file_open(const uint8_t *data, size_t size, char path[32]);

#endif
