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

// Compressors turn a tensor of floats into few bytes and back, with loss.
//
//     lac_compressor_open(&c, "top-k:0.01+natural", LAC_FORM_PLAIN);   // once
//     lac_compressor_reserve(c, shape);            // once for each shape
//     cap = lac_compressor_bound(c, shape, key.scope);
//     lac_compressor_encode(c, &key, shape, x, buffer, cap, &len);
//     lac_compressor_decode(c, &key, shape, buffer, len, y);   // elsewhere
//     lac_compressor_close(c);
//
// Memory: the library borrows every pointer until the call returns. None may
// be NULL but those of tensors and payloads without values. Only open
// and reserve allocate; encoding and decoding never do. Tensors are aligned as
// floats are, payloads need no alignment.
// Threads: a handle serves one thread at a time. Two handles share nothing.

typedef struct lac_compressor lac_compressor;

/// What the encoder makes of a compressor whose papers know several scalings.
/// A payload decodes without knowing the form.
typedef enum lac_form {
    LAC_FORM_PLAIN = 0,       ///< As first published.
    LAC_FORM_UNBIASED = 1,    ///< E[C(x)] = x where that is possible.
    LAC_FORM_CONTRACTIVE = 2, ///< E|C(x) - x|^2 < |x|^2.
} lac_form;

/// What theory promises for a shape: E|C(x) - x|^2 <= error * |x|^2, and
/// E[C(x)] = x when unbiased. `error` is omega in the papers on unbiased
/// operators and 1 - delta in those on contractive ones. It is about values in
/// the normal range of the format: the documentation of each compressor says
/// what becomes of subnormal and of the largest floats. Dithering draws 16 bits
/// a value, so its mean is right to 2^-17 of a step between two levels: of
/// terngrad, to 2^-17 of the largest value.
typedef struct lac_guarantee {
    bool unbiased;
    double error;
} lac_guarantee;

/// What holds for every payload of a compressor.
typedef enum lac_trait {
    /// Payloads of one key and shape are floats that may be added up. Random
    /// sparsifiers have it only when the receiver can derive the key.
    LAC_TRAIT_LINEAR = 1,
    /// The payload does not depend on the key.
    LAC_TRAIT_DETERMINISTIC = 2,
} lac_trait;

/// lac_compressor_open opens the compressor that `spec` names, in a form:
/// "name", "name:key=value,..." or "A+B", where the values that the sparsifier
/// A keeps go through B; at most four are joined. `laconic list` prints names,
/// keys and defaults.
/// On failure `*out` is NULL.
/// Fails with LAC_ERR_NOTFOUND, LAC_ERR_INVALID (key, value or combination) or
/// LAC_ERR_NOMEM.
LAC_FALLIBLE lac_status
lac_compressor_open(lac_compressor **out, const char *spec, lac_form form);

/// lac_compressor_close releases `c`. NULL is allowed.
LAC_API void lac_compressor_close(lac_compressor *c);

/// lac_compressor_reserve gets the working memory for tensors of `shape`, kept
/// until close. Encoding or decoding a shape that needs more than was reserved
/// is an error.
/// Fails with LAC_ERR_INVALID (too many values) or LAC_ERR_NOMEM.
LAC_FALLIBLE lac_status
lac_compressor_reserve(lac_compressor *c, lac_shape shape);

/// lac_compressor_use_kernels chooses the kernels by name: "portable", "avx2"
/// or "best", which is the default. All give the same bytes.
/// Fails with LAC_ERR_NOTFOUND, or LAC_ERR_UNSUPPORTED on a machine without.
LAC_FALLIBLE lac_status
lac_compressor_use_kernels(lac_compressor *c, const char *name);

/// lac_compressor_kernels returns the name of the kernels in use.
LAC_API const char *lac_compressor_kernels(const lac_compressor *c);

/// lac_compressor_wire_id returns the number of the payload format: that of
/// the compressor, and 256 times that of B for "A+B", which may be a sum too.
LAC_API uint32_t lac_compressor_wire_id(const lac_compressor *c);

/// lac_compressor_traits returns the lac_trait bits that hold for payloads
/// made with keys of `scope`.
LAC_API unsigned lac_compressor_traits(
    const lac_compressor *c, lac_scope_kind scope);

/// lac_compressor_guarantee tells what holds for tensors of `shape`; for one
/// that is too large to be accepted, nothing: the error is infinite.
LAC_API lac_guarantee
lac_compressor_guarantee(const lac_compressor *c, lac_shape shape);

/// lac_compressor_bound returns the most bytes a payload of `shape` can have,
/// 0 for a shape that the compressor does not accept.
LAC_API size_t lac_compressor_bound(
    const lac_compressor *c, lac_shape shape, lac_scope_kind scope);

/// lac_compressor_kept returns how many values of a tensor of `shape` a payload
/// tells about: those that a sparsifier keeps, else all of them; 0 for a shape
/// that the compressor does not accept.
LAC_API size_t lac_compressor_kept(const lac_compressor *c, lac_shape shape);

/// lac_compressor_encode writes a payload for the tensor `x` to out[0..cap)
/// and its length to `*len_out`. `cap` must be at least the bound, even if the
/// payload turns out shorter. A tensor without values has an empty payload.
/// Fails, having written nothing, with LAC_ERR_INVALID or LAC_ERR_SPACE.
LAC_FALLIBLE lac_status lac_compressor_encode(
    lac_compressor *c, const lac_key *key, lac_shape shape, const float *x,
    uint8_t *out, size_t cap, size_t *len_out);

/// lac_compressor_check looks at the whole of a payload, which may come from
/// an untrusted peer, and tells whether decoding would succeed.
/// Fails with LAC_ERR_INVALID or LAC_ERR_CORRUPT.
LAC_FALLIBLE lac_status lac_compressor_check(
    lac_compressor *c, const lac_key *key, lac_shape shape, const uint8_t *in,
    size_t len);

/// lac_compressor_decode checks a payload and writes its values to `x`. `key`
/// must equal the encoder's unless its scope is a worker's. On failure `x` is
/// unchanged. Fails like lac_compressor_check.
LAC_FALLIBLE lac_status lac_compressor_decode(
    lac_compressor *c, const lac_key *key, lac_shape shape, const uint8_t *in,
    size_t len, float *x);

/// lac_compressor_decode_add checks a payload and adds `a` times its values to
/// `y`, with the bits of decoding first and adding then; only what a sparsifier
/// left out is not touched, so that not even a -0 becomes 0 there. On failure
/// `y` is unchanged. Fails like lac_compressor_check.
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
/// LAC_ERR_INVALID when a value of `x` or of the sum is not finite.
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
/// finite, so that encoding `x` would not fail for that reason. `max_magnitude`
/// is the largest |x|. The values in memory do not change.
LAC_API bool lac_memory_accepts(
    lac_memory *m, const float *x, float max_magnitude);

/// lac_memory_settle subtracts the values of a delivered payload, which must
/// be the one that the last lac_memory_encode wrote with this key. A value that
/// would not be finite becomes 0.
/// Fails, with the memory unchanged, like lac_compressor_check.
LAC_FALLIBLE lac_status lac_memory_settle(
    lac_memory *m, const lac_key *key, const uint8_t *in, size_t len);

/// lac_memory_read writes the values of the memory to `e`.
LAC_API void lac_memory_read(const lac_memory *m, float *e);

/// lac_memory_write replaces the values of the memory by `e`. A value that is
/// not finite becomes 0. Writing the values that were read continues bit for
/// bit.
LAC_API void lac_memory_write(lac_memory *m, const float *e);

/// lac_memory_size returns the bytes that the memory occupies.
LAC_API size_t lac_memory_size(const lac_memory *m);

// Writing a compressor: fill one lac_compressor_ops. Inside the library, add
// its line to src/compress/compressors.def; outside, pass it to
// lac_compressor_open_with. docs/adding-a-compressor.md walks through it.

struct laci_kernels;

/// What an op is told beside its data.
typedef struct lac_call {
    size_t size; ///< Of this struct, for later growth.
    lac_key key;
    lac_shape shape;
    lac_form form;
    void *scratch; ///< The bytes that `scratch` asked for, aligned to 64.
    const struct laci_kernels *kernels; ///< For the library's own compressors.
} lac_call;

/// How a sparsifier chooses which values to keep. What happens to the values
/// themselves, "+B" included, is the framework's work. Indices are positions
/// in the tensor, each at most once.
typedef struct lac_sparsifier_ops {
    size_t size; ///< Of this struct, for later growth.

    /// How many values are kept, in [1, values].
    size_t (*keep)(const void *state, lac_shape shape);

    /// Writes the indices of the values to keep.
    void (*choose)(
        const void *state, const lac_call *call, const float *x,
        uint32_t *indices_out);

    /// The most bytes put_indices writes.
    size_t (*indices_bound)(
        const void *state, lac_shape shape, lac_scope_kind scope);

    /// Writes what the receiver needs to know the indices, returns its length.
    size_t (*put_indices)(
        const void *state, const lac_call *call, const uint32_t *indices,
        uint8_t *out);

    /// Reads what put_indices wrote at the start of in[0..len): writes the
    /// indices and the number of bytes it used. Fails with LAC_ERR_CORRUPT.
    lac_status (*get_indices)(
        const void *state, const lac_call *call, const uint8_t *in, size_t len,
        uint32_t *indices_out, size_t *used_out);

    /// The choice is uniformly random: values may be scaled by values/keep to
    /// be unbiased, and need not be told to who can derive the key.
    bool random;
} lac_sparsifier_ops;

/// The operations of one compressor. `state` points to plugin.state_size bytes
/// with the settings filled in, constant after open. The framework has checked
/// every argument: there is at least one value and at most max_values, pointers
/// are usable, `out` holds bound(shape) bytes. Pointers to floats may be
/// unaligned by any multiple of 4 bytes, those to bytes by any number.
typedef struct lac_compressor_ops {
    lac_plugin plugin; ///< Must be first.

    /// The most values of one tensor; 0 for LAC_VALUES_MAX.
    size_t max_values;

    /// lac_trait bits of every payload. Ignored for sparsifiers.
    unsigned traits;

    /// Optional: looks at settings together, once, when a handle opens. Fails
    /// with LAC_ERR_INVALID through lac_fail.
    lac_status (*configure)(void *state);

    /// What theory promises in this form. Of a sparsifier: for the choice
    /// alone, its values passing whole.
    lac_guarantee (*guarantee)(
        const void *state, lac_shape shape, lac_form form);

    /// If set, this is a sparsifier, and of what follows only `scratch` is
    /// used, for `choose`.
    const lac_sparsifier_ops *sparsifier;

    /// The most bytes encode writes.
    size_t (*bound)(const void *state, lac_shape shape);

    /// Optional: bytes of scratch the other ops want.
    size_t (*scratch)(const void *state, lac_shape shape);

    /// Writes a payload and returns its length. Cannot fail.
    size_t (*encode)(
        const void *state, const lac_call *call, const float *x, uint8_t *out);

    /// Looks at the whole payload, writes nothing. Fails with LAC_ERR_CORRUPT
    /// through lac_fail.
    lac_status (*check)(
        const void *state, const lac_call *call, const uint8_t *in, size_t len);

    /// Writes the values of a payload that was checked. Cannot fail.
    void (*decode)(
        const void *state, const lac_call *call, const uint8_t *in, size_t len,
        float *x);

    /// Optional: y += a * values, with the bits of decode and then an addition.
    void (*decode_add)(
        const void *state, const lac_call *call, const uint8_t *in, size_t len,
        float a, float *y);

    /// Optional, all three or none: an error memory of the compressor's own.
    /// `memory` is the tensor's floats followed by memory_tail bytes, which
    /// are 0 when the floats are all there is.
    size_t memory_tail;
    /// memory += x, then a payload of memory.
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
} lac_compressor_ops;

/// lac_compressor_open_with opens a compressor the caller brings. The texts and
/// tables that `ops` points to must outlive the handle. `params` is the part of
/// a spec after the colon, "" for the defaults. Fails like lac_compressor_open.
LAC_FALLIBLE lac_status lac_compressor_open_with(
    lac_compressor **out, const lac_compressor_ops *ops, const char *params,
    lac_form form);

/// lac_compressors returns the built-in compressors, `*count_out` of them.
LAC_API const lac_plugin *const *lac_compressors(size_t *count_out);

/// lac_compressor_aliases returns other names for settings of the built-in
/// compressors, `*count_out` of them.
LAC_API const lac_alias *lac_compressor_aliases(size_t *count_out);

#ifdef __cplusplus
}
#endif

#endif
