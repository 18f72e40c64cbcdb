/* Fuzzes entries of the cache of compiled kernels: what is taken is, byte for byte, what was kept.
 */
#include "base/cache.h"
#include "tests/fuzz/file.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[32];
    size_t bytes = 0;
    int fd = fuzz_file_open(data, size, path);
    bool good = peal_cache_check(path);
    char *stored = peal_cache_load(path, &bytes);
    if (good != (stored != NULL) || (stored && (bytes >= size || memcmp(stored, data, bytes) != 0)))
        abort();
    free(stored);
    close(fd);
    return 0;
}
