// SPDX-License-Identifier: MIT
#ifndef LACONIC_COMPRESS_H
#define LACONIC_COMPRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <laconic/layout.h>
#include <laconic/plugin.h>
#include <laconic/random.h>
#include <laconic/status.h>

#ifdef __cplusplus
extern "C" {
#endif

// Compressors encode a tensor of floats in few bytes, with loss, and decode it.
//
//     lac_compressor_open(&c, "top-k:0.01+natural", LAC_FORM_PLAIN);   // once
//     lac_compressor_reserve(c, shape);            // once for each shape
//     cap = lac_compressor_bound(c, shape, key.scope);
//     lac_compressor_encode(c, &key, shape, x, buffer, cap, &len);
//     lac_compressor_decode(c, &key, shape, buffer, len, y);   // elsewhere
//     lac_compressor_close(c);
//
// Memory: the library borrows every pointer until the call returns. Pointers
// must not be NULL, except those of tensors and payloads without values. The
// values and the payload of a call must not overlap. Only open and reserve
// allocate; encoding and decoding never do. Tensors must be aligned as floats,
// payloads need no alignment.
// Threads: a handle serves one thread at a time. Two handles share nothing.

typedef struct lac_compressor lac_compressor;

/// Which of the published scalings the encoder applies. The decoder does not
/// need to know it.
typedef enum lac_form {
    LAC_FORM_PLAIN = 0,       ///< As first published.
    LAC_FORM_UNBIASED = 1,    ///< E[C(x)] = x, where that is possible.
    LAC_FORM_CONTRACTIVE = 2, ///< E|C(x) - x|^2 < |x|^2.
} lac_form;

/// The error bound of a compressor for a shape: E|C(x) - x|^2 <= error * |x|^2,
/// and E[C(x)] = x if unbiased. `error` is omega in papers on unbiased
/// operators and 1 - delta in papers on contractive ones. The bound holds for
/// values in the normal range of the format; the documentation of each
/// compressor describes subnormal values and the largest floats. Dithering
/// draws 16 bits a value, so its mean is exact to 2^-17 of a step between two
/// levels; for terngrad, to 2^-17 of the largest value. That of rotated is a
/// mean over its rotations, measured for blocks of many kinds rather than
/// proved, and its mean is exact to 0.2 % of the length of a block.
typedef struct lac_guarantee {
    bool unbiased;
    double error;
} lac_guarantee;

/// Properties of every payload of a compressor.
typedef enum lac_trait {
    /// Payloads of one key and shape are floats: the sum of two payloads
    /// decodes to the sum, up to rounding. Random compressors have this
    /// property only for keys that the receiver can derive.
    LAC_TRAIT_LINEAR = 1,
    /// The payload does not depend on the key.
    LAC_TRAIT_DETERMINISTIC = 2,
    /// Every value is compressed by itself: what it decodes to depends on the
    /// value, its index and the key, and on average over keys on the value
    /// alone. A tensor can thus be compressed in parts, with the same law.
    /// `natural:bits=8` does so for values above 2^-125 of the largest.
    LAC_TRAIT_ELEMENTWISE = 4,
    /// Every payload of a shape has lac_compressor_bound bytes.
    LAC_TRAIT_FIXED_SIZE = 8,
} lac_trait;

/// lac_compressor_open opens the compressor that `spec` names, in a form. A
/// spec is "name", "name:key=value,..." or "A+B": the compressor B encodes the
/// values that the sparsifier A keeps. At most four are joined. `laconic list`
/// prints names, keys and defaults. On failure `*out` is NULL.
/// Fails with LAC_ERR_NOTFOUND, LAC_ERR_INVALID (spec, form, key, value or
/// combination) or LAC_ERR_NOMEM.
LAC_FALLIBLE lac_status
lac_compressor_open(lac_compressor **out, const char *spec, lac_form form);

/// lac_compressor_close releases `c`. NULL is allowed.
LAC_API void lac_compressor_close(lac_compressor *c);

/// lac_compressor_reserve allocates the working memory for tensors of `shape`,
/// which `c` keeps until close. Encoding or decoding a shape that needs more
/// fails.
/// Fails with LAC_ERR_INVALID (too many values) or LAC_ERR_NOMEM.
LAC_FALLIBLE lac_status
lac_compressor_reserve(lac_compressor *c, lac_shape shape);

/// lac_compressor_use_kernels selects the kernels by name: "portable", "avx2",
/// "avx512", "neon" or "best", which is the default. ":prefetch=on" or
/// ":prefetch=off" after the name selects whether they prefetch, for
/// measurements; otherwise the processor decides. All give the same bytes.
/// Fails with LAC_ERR_NOTFOUND, LAC_ERR_INVALID (NULL, or what follows the
/// name), or LAC_ERR_UNSUPPORTED if the machine cannot run them.
LAC_FALLIBLE lac_status
lac_compressor_use_kernels(lac_compressor *c, const char *name);

/// lac_compressor_use_threads lets `threads` threads, the caller's included,
/// encode and decode-add a large tensor where its parts are independent of each
/// other. Identity, half, bfloat16, natural with 9 bits, and dithering with a
/// bucket that divides LAC_PART encode and decode-add so; sign, natural with 8
/// bits and other dithering only decode-add. The others, and decode, use one
/// thread. All numbers give the same bits. The threads sleep between calls and
/// end with the handle.
/// Fails with LAC_ERR_INVALID or LAC_ERR_NOMEM; the handle is then unchanged.
LAC_FALLIBLE lac_status
lac_compressor_use_threads(lac_compressor *c, uint32_t threads);

/// lac_compressor_kernels returns the name of the kernels in use.
LAC_API const char *lac_compressor_kernels(const lac_compressor *c);

/// lac_compressor_prefetches returns whether the kernels in use have
/// instructions that prefetch. Some processors are slower with them.
LAC_API bool lac_compressor_prefetches(const lac_compressor *c);

/// lac_compressor_wire_id returns the number of the payload format: the wire id
/// of the compressor, for "A+B" that of A plus 256 times that of B.
LAC_API uint32_t lac_compressor_wire_id(const lac_compressor *c);

/// lac_compressor_traits returns the lac_trait bits of payloads that are
/// encoded with keys of `scope`.
LAC_API unsigned lac_compressor_traits(
    const lac_compressor *c, lac_scope_kind scope);

/// lac_compressor_group returns the number of values that are compressed
/// together: a tensor may be split at its multiples and compressed in parts,
/// with the same law. 1 for an elementwise compressor, 0 if tensors must be
/// whole.
LAC_API size_t lac_compressor_group(const lac_compressor *c);

/// lac_compressor_guarantee returns the error bound for tensors of `shape`. The
/// error is infinite for a shape that the compressor does not accept.
LAC_API lac_guarantee
lac_compressor_guarantee(const lac_compressor *c, lac_shape shape);

/// lac_compressor_bound returns the maximum number of bytes of a payload of
/// `shape`, 0 for a shape that the compressor does not accept.
LAC_API size_t lac_compressor_bound(
    const lac_compressor *c, lac_shape shape, lac_scope_kind scope);

/// lac_compressor_kept returns how many values of a tensor of `shape` a payload
/// holds: those that a sparsifier keeps, otherwise all of them; 0 for a shape
/// that the compressor does not accept.
LAC_API size_t lac_compressor_kept(const lac_compressor *c, lac_shape shape);

/// lac_compressor_encode writes a payload for the tensor `x` to out[0..cap)
/// and its length to `*len_out`. `cap` must be at least the bound, even if the
/// payload is shorter. A tensor without values has an empty payload.
/// Fails, having written nothing, with LAC_ERR_INVALID or LAC_ERR_SPACE.
LAC_FALLIBLE lac_status lac_compressor_encode(
    lac_compressor *c, const lac_key *key, lac_shape shape, const float *x,
    uint8_t *out, size_t cap, size_t *len_out);

/// lac_compressor_check checks a whole payload, which may come from an
/// untrusted peer. If it succeeds, decoding succeeds.
/// Fails with LAC_ERR_INVALID (arguments) or LAC_ERR_CORRUPT (payload).
LAC_FALLIBLE lac_status lac_compressor_check(
    lac_compressor *c, const lac_key *key, lac_shape shape, const uint8_t *in,
    size_t len);

/// lac_compressor_decode checks a payload and writes its values to `x`. `key`
/// must equal the encoder's, unless its scope is a worker. On failure `x` is
/// unchanged. Fails like lac_compressor_check.
LAC_FALLIBLE lac_status lac_compressor_decode(
    lac_compressor *c, const lac_key *key, lac_shape shape, const uint8_t *in,
    size_t len, float *x);

/// lac_compressor_decode_add checks a payload and adds `a` times its values to
/// `y`, with the same bits as decoding first and adding afterwards. Values that
/// a sparsifier left out are not touched: a -0 in `y` stays -0. On failure `y`
/// is unchanged. Fails like lac_compressor_check.
LAC_FALLIBLE lac_status lac_compressor_decode_add(
    lac_compressor *c, const lac_key *key, lac_shape shape, const uint8_t *in,
    size_t len, float a, float *y);

// Error memory: the part of a tensor that compression drops is added to the
// next one. A step is two calls, so that a round that fails in between loses
// nothing:
//
//     lac_memory_encode(m, &key, x, buffer, cap, &len);   // e += x; C(e)
//     ... the payload is delivered ...
//     lac_memory_settle(m, &key, buffer, len);            // e -= C(e)
//
// The values in memory are always finite.

typedef struct lac_memory lac_memory;

/// lac_memory_open makes the empty error memory of one tensor of `shape` and
/// reserves that shape. `c` must outlive it. On failure `*out` is NULL.
/// Fails with LAC_ERR_INVALID or LAC_ERR_NOMEM.
LAC_FALLIBLE lac_status
lac_memory_open(lac_memory **out, lac_compressor *c, lac_shape shape);

/// lac_memory_close releases `m`. NULL is allowed.
LAC_API void lac_memory_close(lac_memory *m);

/// lac_memory_encode adds `x` to the memory and writes a payload of the sum.
/// Fails, with the memory unchanged, like lac_compressor_encode, and with
/// LAC_ERR_INVALID when a value of `x` or of the sum is not finite or is larger
/// than the compressor can encode.
LAC_FALLIBLE lac_status lac_memory_encode(
    lac_memory *m, const lac_key *key, const float *x, uint8_t *out, size_t cap,
    size_t *len_out);

/// lac_memory_encode_bounded does the same for a caller that knows the largest
/// |x|, and saves the pass that finds it. A number that is larger does no harm;
/// with one that is smaller, the memory may overflow.
/// Fails like lac_memory_encode.
LAC_FALLIBLE lac_status lac_memory_encode_bounded(
    lac_memory *m, const lac_key *key, const float *x, float max_magnitude,
    uint8_t *out, size_t cap, size_t *len_out);

/// lac_memory_accepts returns whether every value of the memory plus `x` is
/// finite and not larger than the compressor can encode. `max_magnitude`
/// is the largest |x|. The values in memory do not change.
LAC_API bool lac_memory_accepts(
    lac_memory *m, const float *x, float max_magnitude);

/// lac_memory_settle subtracts the values of a delivered payload, which must
/// be the one that the last lac_memory_encode wrote with this key. A value that
/// would not be finite becomes 0, one that is larger than the compressor can
/// encode becomes the largest.
/// Fails, with the memory unchanged, like lac_compressor_check.
LAC_FALLIBLE lac_status lac_memory_settle(
    lac_memory *m, const lac_key *key, const uint8_t *in, size_t len);

/// lac_memory_read writes the values of the memory to `e`.
LAC_API void lac_memory_read(const lac_memory *m, float *e);

/// lac_memory_write replaces the values of the memory by `e`. A value that is
/// not finite becomes 0, one that is larger than the compressor can encode
/// becomes the largest. Writing the values that were read continues bit for
/// bit.
LAC_API void lac_memory_write(lac_memory *m, const float *e);

/// lac_memory_size returns the bytes that the memory occupies.
LAC_API size_t lac_memory_size(const lac_memory *m);

// Writing a compressor: fill in one lac_compressor_ops. Inside the library, add
// a line to src/compress/compressors.def; outside, pass the table to
// lac_compressor_open_with. docs/adding-a-compressor.md is a tutorial.
//
// Tables carry their size, so that they can grow. The library accepts tables
// of version 0.1.0 and later: members that an older table lacks are taken as
// zero, members of a newer one that it does not know are ignored.

struct laci_kernels;

/// The arguments of an op besides its data.
typedef struct lac_call {
    size_t size; ///< Of this struct, for later growth.
    lac_key key;
    lac_shape shape;
    lac_form form;
    void *scratch; ///< As many bytes as `scratch` returned, aligned to 64.
    const struct laci_kernels *kernels; ///< For the library's own compressors.
} lac_call;

/// How a sparsifier chooses which values to keep. The framework handles the
/// values themselves, "+B" included. Indices are positions in the tensor; none
/// occurs twice.
typedef struct lac_sparsifier_ops {
    size_t size; ///< Of this struct, for later growth.

    /// Returns how many values are kept, in [1, values].
    size_t (*keep)(const void *state, lac_shape shape);

    /// Writes the indices of the values to keep.
    void (*choose)(
        const void *state, const lac_call *call, const float *x,
        uint32_t *indices_out);

    /// Returns the maximum number of bytes that put_indices writes.
    size_t (*indices_bound)(
        const void *state, lac_shape shape, lac_scope_kind scope);

    /// Writes a code of the indices for the receiver and returns its length.
    size_t (*put_indices)(
        const void *state, const lac_call *call, const uint32_t *indices,
        uint8_t *out);

    /// Reads the code that put_indices wrote at the start of in[0..len).
    /// Writes the indices and the length of the code. Fails with
    /// LAC_ERR_CORRUPT through lac_fail.
    lac_status (*get_indices)(
        const void *state, const lac_call *call, const uint8_t *in, size_t len,
        uint32_t *indices_out, size_t *used_out);

    /// The choice is uniformly random: scaling by values/keep makes it
    /// unbiased, and the indices are not sent if the receiver can derive the
    /// key.
    bool random;
} lac_sparsifier_ops;

enum { LAC_PART = 1024 }; ///< See lac_part.

/// A part of a tensor: values [first, first + n). `first` is a multiple of
/// LAC_PART.
typedef struct lac_part {
    size_t first;
    size_t n;
} lac_part;

/// The operations of one compressor. `state` points to plugin.state_size bytes
/// that hold the settings and do not change after open. The framework has
/// checked every argument: there is at least one value and at most max_values,
/// pointers are valid, `out` has room for bound(shape) bytes. Pointers to
/// floats are aligned to 4 bytes, pointers to bytes to 1.
typedef struct lac_compressor_ops {
    lac_plugin plugin; ///< Must be first.

    /// The maximum number of values of a tensor; 0 for LAC_VALUES_MAX.
    size_t max_values;

    /// lac_trait bits of every payload. Ignored for sparsifiers.
    unsigned traits;

    /// Optional: checks the settings together and completes the state, once,
    /// when a handle opens. Fails with LAC_ERR_INVALID through lac_fail.
    lac_status (*configure)(void *state);

    /// Returns the error bound in this form. For a sparsifier: of the choice
    /// alone, with exact values.
    lac_guarantee (*guarantee)(
        const void *state, lac_shape shape, lac_form form);

    /// If set, this is a sparsifier. Of the members below, only `scratch` is
    /// then used, for the ops of the sparsifier.
    const lac_sparsifier_ops *sparsifier;

    /// Returns the maximum number of bytes that encode writes.
    size_t (*bound)(const void *state, lac_shape shape);

    /// Optional: returns how many bytes of scratch the other ops need.
    size_t (*scratch)(const void *state, lac_shape shape);

    /// Writes a payload and returns its length. Cannot fail.
    size_t (*encode)(
        const void *state, const lac_call *call, const float *x, uint8_t *out);

    /// Checks the whole payload and writes nothing. Fails with
    /// LAC_ERR_CORRUPT through lac_fail.
    lac_status (*check)(
        const void *state, const lac_call *call, const uint8_t *in, size_t len);

    /// Writes the values of a payload that was checked. Cannot fail.
    void (*decode)(
        const void *state, const lac_call *call, const uint8_t *in, size_t len,
        float *x);

    /// Optional: y += a * values, with the bits of decoding first and adding
    /// afterwards.
    void (*decode_add)(
        const void *state, const lac_call *call, const uint8_t *in, size_t len,
        float a, float *y);

    /// Optional, all three ops or none: an error memory of the compressor's
    /// own. `memory` is the tensor's floats followed by memory_tail bytes. A
    /// tail of zeros means that the floats are the plain values.
    size_t memory_tail;
    /// memory += x, then writes a payload of the memory.
    size_t (*encode_add)(
        const void *state, const lac_call *call, const float *x, void *memory,
        uint8_t *out);
    /// memory -= values of the payload, which was checked.
    void (*settle)(
        const void *state, const lac_call *call, const uint8_t *in, size_t len,
        void *memory);
    /// Writes the values of the memory to `e`, which may be `memory` itself.
    void (*residual)(
        const void *state, const lac_call *call, const void *memory, float *e);

    // Members from here on are missing in tables of version 0.1.0. They are
    // all optional.

    /// Optional: returns whether all values of a payload that was checked are
    /// finite. Without it the payload is decoded to find out.
    bool (*finite)(
        const void *state, const lac_call *call, const uint8_t *in, size_t len);

    /// Optional: returns a bound of max|x - C(x)| / max|x| over all tensors x
    /// whose values are finite and so are those of C(x). Without it an error
    /// memory takes one more pass over its values each step, to see that they
    /// are finite.
    double (*growth)(const void *state, lac_shape shape, lac_form form);

    /// Optional: returns the largest magnitude of x for which C(x) is finite.
    /// An error memory does not accept more. Without it, C(x) is finite for all
    /// finite x.
    float (*largest)(const void *state, lac_shape shape);

    /// Optional: see lac_compressor_group. Without it the group is 1 for a
    /// compressor with LAC_TRAIT_ELEMENTWISE, and 0 for others.
    size_t (*group)(const void *state);

    /// Decoding draws from the key. The framework then sends the key before the
    /// payload, 16 bytes, to a receiver that cannot derive it, and the ops
    /// always get the encoder's key. Such a payload is not linear. Not for
    /// compressors with encode_add, nor for sparsifiers.
    bool needs_key;

    /// Optional, in place of needs_key: returns whether decoding a tensor of
    /// `shape` draws from the key. The ops then get a key that is made from a
    /// seed of 8 bytes, and the seed from the encoder's key. Only the seed
    /// precedes the payload, and only if the receiver cannot derive it.
    bool (*needs_seed)(const void *state, lac_shape shape);

    /// Optional, in place of decode_add: the same for a part of the tensor,
    /// with y[0] for its first value, if it can be decoded without the others.
    /// Algorithms then work on parts that stay in the cache, and threads on
    /// several parts at once: the op must not use the scratch.
    void (*decode_add_part)(
        const void *state, const lac_call *call, const uint8_t *in, size_t len,
        lac_part part, float a, float *y);

    /// Optional: writes the bytes of a part to the payload `out`, which has
    /// `bound` bytes and those of encode. x[0] is the first value of the part.
    /// Threads may encode several parts at once, so it must not use the
    /// scratch.
    void (*encode_part)(
        const void *state, const lac_call *call, const float *x, lac_part part,
        uint8_t *out);

    /// Optional: returns whether these settings allow encode_part.
    bool (*encodes_parts)(const void *state);
} lac_compressor_ops;

/// lac_compressor_open_with opens a compressor that the caller defines. The
/// strings and tables that `ops` points to must outlive the handle. `params` is
/// the part of a spec after the colon, "" for the defaults.
/// Fails like lac_compressor_open.
LAC_FALLIBLE lac_status lac_compressor_open_with(
    lac_compressor **out, const lac_compressor_ops *ops, const char *params,
    lac_form form);

/// lac_compressors returns the built-in compressors, `*count_out` of them.
LAC_API const lac_plugin *const *lac_compressors(size_t *count_out);

/// lac_compressor_aliases returns other names of built-in compressors with
/// certain settings, `*count_out` of them.
LAC_API const lac_alias *lac_compressor_aliases(size_t *count_out);

#ifdef __cplusplus
}
#endif

#endif
