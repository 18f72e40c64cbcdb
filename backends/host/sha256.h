/* SHA-256 (FIPS 180-4): names and checks the entries of the kernel cache. */
#ifndef PEAL_HOST_SHA256_H
#define PEAL_HOST_SHA256_H

#include <stddef.h>
#include <stdint.h>

enum { HOST_SHA256_BYTES = 32, HOST_SHA256_TEXT = 65 };

typedef struct host_sha256 {
    uint32_t state[8];
    uint64_t bytes;
    unsigned char block[64];
} host_sha256;

void host_sha256_init(host_sha256 *hash);
void host_sha256_add(host_sha256 *hash, const void *data, size_t bytes);
void host_sha256_finish(host_sha256 *hash, unsigned char digest[HOST_SHA256_BYTES]);
/* As lower-case hexadecimal digits. */
void host_sha256_text(const unsigned char digest[HOST_SHA256_BYTES], char text[HOST_SHA256_TEXT]);

#endif
