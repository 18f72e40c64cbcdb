/* What an mlx5 adapter reads and writes: entries of a send queue, its record and its register, and
 * completions. One text for C and for NVRTC, so that CPUs, streams and kernels ring the same way.
 *
 * A send queue is a ring of basic blocks of 64 bytes. An entry says its own number; all of it is
 * big-endian but the inline word. It is due when the queue's record says a number behind it and
 * then the first eight bytes of the last entry, as they lie in memory, are stored to the queue's
 * register in one store; its two halves in turn. Between the entry and the record, and between the
 * record and the register, must be a fence that the adapter sees. Layouts: "Mellanox Adapters
 * Programmer's Reference Manual", and infiniband/mlx5dv.h of rdma-core. */
#ifndef PEAL_RUNTIME_NETWORK_MLX5_ENTRIES_H
#define PEAL_RUNTIME_NETWORK_MLX5_ENTRIES_H

#ifdef __CUDACC_RTC__
typedef unsigned char mlx5_u8;
typedef unsigned int mlx5_u32;
typedef unsigned long long mlx5_u64;
#define MLX5_INLINE static __device__ __forceinline__
#else
#include <stdint.h>
typedef uint8_t mlx5_u8;
typedef uint32_t mlx5_u32;
typedef uint64_t mlx5_u64;
#ifdef __CUDACC__
#define MLX5_INLINE static __host__ __device__ inline
#else
#define MLX5_INLINE static inline
#endif
#endif

enum {
    MLX5_BLOCK_BYTES = 64,
    MLX5_SENDS = 1, /* the word of a queue's record that says how many entries are due */
    MLX5_WRITE_ = 0x08,
    MLX5_FETCH_ADD_ = 0x12,
    MLX5_SIGNALLED_ = 8,
    MLX5_WRITE_PARTS_ = 3, /* of 16 bytes: what, where to, from where */
    MLX5_ADD_PARTS_ = 4
};

/* A send queue. A block each for all entries that are made here. */
typedef struct mlx5_queue {
    mlx5_u8 *entry;
    mlx5_u32 blocks; /* a power of two */
    mlx5_u32 number;
} mlx5_queue;

/* Memory there or here: an address and the key that it is registered by. */
typedef struct mlx5_place {
    mlx5_u64 at;
    mlx5_u32 key;
} mlx5_place;

MLX5_INLINE mlx5_u32 mlx5_big32(mlx5_u32 value)
{
#ifdef __CUDA_ARCH__
    return __byte_perm(value, 0, 0x0123);
#else
    return __builtin_bswap32(value);
#endif
}

MLX5_INLINE mlx5_u64 mlx5_big64(mlx5_u64 value)
{
    return (mlx5_u64)mlx5_big32((mlx5_u32)value) << 32 | mlx5_big32((mlx5_u32)(value >> 32));
}

/* Two words that follow each other in memory. */
MLX5_INLINE mlx5_u64 mlx5_two(mlx5_u32 first, mlx5_u32 second)
{
    return (mlx5_u64)second << 32 | first;
}

MLX5_INLINE volatile mlx5_u64 *mlx5_entry_at(const mlx5_queue *q, mlx5_u64 number)
{
    return (volatile mlx5_u64 *)(void *)(q->entry +
                                         (number & (q->blocks - 1)) * (mlx5_u64)MLX5_BLOCK_BYTES);
}

/* The first eight bytes of an entry: its code, number, queue and size. */
MLX5_INLINE mlx5_u64 mlx5_begin(const mlx5_queue *q, mlx5_u64 number, mlx5_u32 code, mlx5_u32 parts)
{
    return mlx5_two(mlx5_big32((mlx5_u32)(number & 0xffff) << 8 | code),
                    mlx5_big32(q->number << 8 | parts));
}

MLX5_INLINE void mlx5_head(const mlx5_queue *q, mlx5_u64 number, mlx5_u32 code, mlx5_u32 parts,
                           int signalled, mlx5_place to)
{
    volatile mlx5_u64 *word = mlx5_entry_at(q, number);
    word[0] = mlx5_begin(q, number, code, parts);
    word[1] = mlx5_two(signalled ? mlx5_big32(MLX5_SIGNALLED_) : 0, 0);
    word[2] = mlx5_big64(to.at);
    word[3] = mlx5_two(mlx5_big32(to.key), 0);
}

/* Entry `number`: bytes from here to there. bytes: 1 to 2^31 - 1. */
MLX5_INLINE void mlx5_put_bytes(const mlx5_queue *q, mlx5_u64 number, mlx5_place to,
                                mlx5_place from, mlx5_u32 bytes, int signalled)
{
    volatile mlx5_u64 *word = mlx5_entry_at(q, number);
    mlx5_head(q, number, MLX5_WRITE_, MLX5_WRITE_PARTS_, signalled, to);
    word[4] = mlx5_two(mlx5_big32(bytes), mlx5_big32(from.key));
    word[5] = mlx5_big64(from.at);
}

/* The words 4 and 5 of an entry that writes a word: eight bytes, inline. */
MLX5_INLINE void mlx5_set_word(const mlx5_queue *q, mlx5_u64 number, mlx5_u64 value)
{
    volatile mlx5_u64 *word = mlx5_entry_at(q, number);
    word[4] = mlx5_two(mlx5_big32(0x80000008U), (mlx5_u32)value);
    word[5] = value >> 32;
}

/* Entry `number`: writes a word there. It lies in the entry as it lies in memory. */
MLX5_INLINE void mlx5_put_word(const mlx5_queue *q, mlx5_u64 number, mlx5_place to, mlx5_u64 value,
                               int signalled)
{
    mlx5_head(q, number, MLX5_WRITE_, MLX5_WRITE_PARTS_, signalled, to);
    mlx5_set_word(q, number, value);
}

/* Entry `number`: adds to a word there; the one before is written to `back`, here. */
MLX5_INLINE void mlx5_add_word(const mlx5_queue *q, mlx5_u64 number, mlx5_place to, mlx5_u64 value,
                               mlx5_place back, int signalled)
{
    volatile mlx5_u64 *word = mlx5_entry_at(q, number);
    mlx5_head(q, number, MLX5_FETCH_ADD_, MLX5_ADD_PARTS_, signalled, to);
    word[4] = mlx5_big64(value);
    word[5] = 0;
    word[6] = mlx5_two(mlx5_big32(8), mlx5_big32(back.key));
    word[7] = mlx5_big64(back.at);
}

/* What is stored to the queue's record: so many entries are due since the first. */
MLX5_INLINE mlx5_u32 mlx5_record(mlx5_u64 count)
{
    return mlx5_big32((mlx5_u32)count & 0xffff);
}

/* What is stored to its register behind that: the first eight bytes of the last entry. */
MLX5_INLINE mlx5_u64 mlx5_doorbell(const mlx5_queue *q, mlx5_u64 last)
{
    return *mlx5_entry_at(q, last);
}

/* Completion number 0, 1, ... of a ring of `entries` (a power of two): 0: it is not there, 1: it
 * went well, below 0: less the syndrome of its error. *counter: the number of the entry that it is
 * of, modulo 2^16. The owner bit flips with each turn of the ring; what never was written has code
 * 15. */
MLX5_INLINE int mlx5_completion(const mlx5_u8 *ring, mlx5_u32 entries, mlx5_u64 number,
                                mlx5_u32 *counter)
{
    const volatile mlx5_u8 *at = ring + (number & (entries - 1)) * (mlx5_u64)MLX5_BLOCK_BYTES;
    const mlx5_u32 owner = at[63];
    if (owner >> 4 == 15 || (owner & 1) != (mlx5_u32)((number & entries) != 0))
        return 0;
#ifdef __CUDA_ARCH__
    __threadfence_system();
#else
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
#endif
    *counter = (mlx5_u32)at[60] << 8 | at[61];
    return owner >> 4 == 0 ? 1 : -(int)at[55];
}

/* What is stored to a completion ring's record: `count` have been taken. */
MLX5_INLINE mlx5_u32 mlx5_taken(mlx5_u64 count)
{
    return mlx5_big32((mlx5_u32)count & 0xffffff);
}

#endif
