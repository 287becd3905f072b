// SPDX-License-Identifier: MIT
// Key files: a private key as PEM (PKCS 8) or a token of 32 bytes, mode 0600.
// A file is written under another name and then linked to its own, so that it
// is never half written and never replaces a file.
#define _GNU_SOURCE
#include "transport/tcp/key.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/kdf.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fail.h"

enum { FILE_MAX = 4096, PATH_SIZE = 4096 };

bool laci_tcp_key_public(const EVP_PKEY *key, uint8_t out[LACI_TCP_KEY])
{
    size_t len = LACI_TCP_KEY;
    return EVP_PKEY_get_id(key) == EVP_PKEY_ED25519 &&
           EVP_PKEY_get_raw_public_key(key, out, &len) == 1 &&
           len == LACI_TCP_KEY;
}

void laci_tcp_key_text(
    const uint8_t key[LACI_TCP_KEY], char text_out[LAC_KEY_TEXT_SIZE])
{
    (void)EVP_EncodeBlock((uint8_t *)text_out, key, LACI_TCP_KEY);
}

bool laci_tcp_key_parse(const char *text, size_t len, uint8_t out[LACI_TCP_KEY])
{
    uint8_t bytes[LACI_TCP_KEY + 4];
    char again[LAC_KEY_TEXT_SIZE];
    if (len != LAC_KEY_TEXT_SIZE - 1 ||
        EVP_DecodeBlock(bytes, (const uint8_t *)text, (int)len) !=
            LACI_TCP_KEY + 1) {
        return false;
    }
    // One spelling a key: the decoder ignores bits that carry nothing.
    laci_tcp_key_text(bytes, again);
    memcpy(out, bytes, LACI_TCP_KEY);
    return memcmp(again, text, len) == 0;
}

static lac_status key_fail(
    const laci_services *services, lac_status status, const char *what,
    const char *path)
{
    return services->fail(status, "%s %s: %s", what, path, strerror(errno));
}

// Makes the folders of `path` that do not exist.
static void make_folders(const char *path)
{
    char folder[PATH_SIZE];
    const size_t len = strlen(path);
    if (len >= sizeof(folder)) {
        return;
    }
    memcpy(folder, path, len + 1);
    for (char *slash = strchr(folder + 1, '/'); slash != NULL;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(folder, 0700); // the file itself reports the error
        *slash = '/';
    }
}

static bool key_write_all(int file, const uint8_t *bytes, size_t len)
{
    while (len > 0) {
        const ssize_t written = write(file, bytes, len);
        if (written <= 0) {
            errno = written == 0 ? ENOSPC : errno;
            return false;
        }
        bytes += written;
        len -= (size_t)written;
    }
    return fsync(file) == 0;
}

// Writes a new file that only this user can read.
static lac_status write_secret(
    const laci_services *services, const char *what, const char *path,
    const uint8_t *bytes, size_t len)
{
    char temporary[PATH_SIZE];
    const int written =
        snprintf(temporary, sizeof(temporary), "%s.XXXXXX", path);
    if (written < 0 || (size_t)written >= sizeof(temporary)) {
        errno = ENAMETOOLONG;
        return key_fail(services, LAC_ERR_INVALID, what, path);
    }
    if (access(path, F_OK) == 0) {
        return services->fail(
            LAC_ERR_INVALID, "%s %s exists, and is never overwritten", what,
            path);
    }
    make_folders(path);
    const int file = mkostemp(temporary, O_CLOEXEC); // mode 0600
    if (file < 0) {
        return key_fail(services, LAC_ERR_INVALID, what, path);
    }
    lac_status status = LAC_OK;
    if (!key_write_all(file, bytes, len) || link(temporary, path) != 0) {
        status = key_fail(services, LAC_ERR_INVALID, what, path);
    }
    (void)close(file);
    (void)unlink(temporary);
    return status;
}

// Whoever owns a file can change it and its mode: that must be this user or
// root. Others must not be able to read it.
static lac_status check_access(
    const laci_services *services, const char *what, const char *path,
    const struct stat *about)
{
    if ((about->st_mode & 077) != 0) {
        return services->fail(
            LAC_ERR_INVALID,
            "%s %s has mode %04o: others can use it, expected 0600", what, path,
            (unsigned)(about->st_mode & 07777));
    }
    if (about->st_uid != geteuid() && about->st_uid != 0) {
        return services->fail(
            LAC_ERR_INVALID,
            "%s %s belongs to user %ju, expected this user (%ju) or root", what,
            path, (uintmax_t)about->st_uid, (uintmax_t)geteuid());
    }
    return LAC_OK;
}

// Reads a file of less than FILE_MAX bytes that only this user can read.
static lac_status read_secret(
    const laci_services *services, const char *what, const char *path,
    uint8_t bytes_out[FILE_MAX], size_t *len_out)
{
    struct stat about;
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return key_fail(
            services, errno == ENOENT ? LAC_ERR_NOTFOUND : LAC_ERR_INVALID,
            what, path);
    }
    ssize_t len = -1;
    lac_status status = LAC_OK;
    if (fstat(file, &about) != 0 ||
        (len = read(file, bytes_out, FILE_MAX)) < 0) {
        status = key_fail(services, LAC_ERR_INVALID, what, path);
    } else {
        status = check_access(services, what, path, &about);
    }
    if (status == LAC_OK && len == FILE_MAX) {
        status = services->fail(
            LAC_ERR_CORRUPT, "%s %s has %d bytes or more, expected fewer", what,
            path, FILE_MAX);
    }
    (void)close(file);
    *len_out = len < 0 ? 0 : (size_t)len;
    return status;
}

lac_status laci_tcp_key_new(const laci_services *services, EVP_PKEY **out)
{
    *out = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
    if (*out == NULL) {
        return services->fail(
            LAC_ERR_UNSUPPORTED, "tcp: OpenSSL cannot make an Ed25519 key");
    }
    return LAC_OK;
}

static void write_text(const EVP_PKEY *key, char text_out[LAC_KEY_TEXT_SIZE])
{
    uint8_t public[LACI_TCP_KEY] = {0};
    (void)laci_tcp_key_public(key, public);
    laci_tcp_key_text(public, text_out);
}

lac_status laci_tcp_key_create(
    const laci_services *services, const char *path,
    char text_out[LAC_KEY_TEXT_SIZE])
{
    EVP_PKEY *key = NULL;
    LAC_TRY(laci_tcp_key_new(services, &key));
    BIO *const memory = BIO_new(BIO_s_secmem());
    char *pem = NULL;
    lac_status status = LAC_OK;
    if (memory == NULL || PEM_write_bio_PKCS8PrivateKey(
                              memory, key, NULL, NULL, 0, NULL, NULL) != 1) {
        status = services->fail(LAC_ERR_NOMEM, "tcp: no memory for a key");
    } else {
        const long len = BIO_get_mem_data(memory, &pem);
        status = write_secret(
            services, "key", path, (const uint8_t *)pem, (size_t)len);
    }
    if (status == LAC_OK) {
        write_text(key, text_out);
    }
    BIO_free(memory);
    EVP_PKEY_free(key);
    return status;
}

// OpenSSL would ask at the terminal for the password of an encrypted key.
static int no_password(char *out, int cap, int writing, void *unused)
{
    (void)out;
    (void)cap;
    (void)writing;
    (void)unused;
    return -1;
}

lac_status laci_tcp_key_load(
    const laci_services *services, const char *path, EVP_PKEY **out)
{
    uint8_t bytes[FILE_MAX];
    uint8_t public[LACI_TCP_KEY];
    size_t len = 0;
    *out = NULL;
    const lac_status status = read_secret(services, "key", path, bytes, &len);
    if (status == LAC_ERR_NOTFOUND) {
        return services->fail(
            LAC_ERR_NOTFOUND, "key %s does not exist; `laconic key` makes one",
            path);
    }
    LAC_TRY(status);
    BIO *const memory = BIO_new_mem_buf(bytes, (int)len);
    EVP_PKEY *const key =
        memory == NULL
            ? NULL
            : PEM_read_bio_PrivateKey(memory, NULL, no_password, NULL);
    BIO_free(memory);
    ERR_clear_error();
    OPENSSL_cleanse(bytes, sizeof(bytes));
    if (key == NULL || !laci_tcp_key_public(key, public)) {
        EVP_PKEY_free(key);
        return services->fail(
            LAC_ERR_CORRUPT,
            "key %s is not an Ed25519 private key as `laconic key` writes it",
            path);
    }
    *out = key;
    return LAC_OK;
}

lac_status laci_tcp_key_read(
    const laci_services *services, const char *path,
    char text_out[LAC_KEY_TEXT_SIZE])
{
    EVP_PKEY *key = NULL;
    LAC_TRY(laci_tcp_key_load(services, path, &key));
    write_text(key, text_out);
    EVP_PKEY_free(key);
    return LAC_OK;
}

lac_status laci_tcp_token_create(
    const laci_services *services, const char *path)
{
    uint8_t token[LACI_TCP_TOKEN];
    if (RAND_priv_bytes(token, sizeof(token)) != 1) {
        return services->fail(
            LAC_ERR_UNSUPPORTED, "tcp: OpenSSL has no random bytes");
    }
    const lac_status status =
        write_secret(services, "token", path, token, sizeof(token));
    OPENSSL_cleanse(token, sizeof(token));
    return status;
}

// HKDF-SHA256 of the token: nobody finds the token or another purpose's key
// from a derived key.
static bool derive_seed(
    const uint8_t *token, const char *purpose, uint8_t seed_out[32])
{
    size_t len = 32;
    EVP_PKEY_CTX *const context = EVP_PKEY_CTX_new_id(EVP_PKEY_HKDF, NULL);
    const bool derived =
        context != NULL && EVP_PKEY_derive_init(context) == 1 &&
        EVP_PKEY_CTX_set_hkdf_md(context, EVP_sha256()) == 1 &&
        EVP_PKEY_CTX_set1_hkdf_key(context, token, LACI_TCP_TOKEN) == 1 &&
        EVP_PKEY_CTX_add1_hkdf_info(
            context, (const uint8_t *)purpose, (int)strlen(purpose)) == 1 &&
        EVP_PKEY_derive(context, seed_out, &len) == 1;
    EVP_PKEY_CTX_free(context);
    return derived;
}

lac_status laci_tcp_key_derive(
    const laci_services *services, const char *path, const char *purpose,
    EVP_PKEY **out)
{
    uint8_t token[FILE_MAX], seed[32];
    size_t len = 0;
    *out = NULL;
    LAC_TRY(read_secret(services, "token", path, token, &len));
    if (len != LACI_TCP_TOKEN) {
        OPENSSL_cleanse(token, sizeof(token));
        return services->fail(
            LAC_ERR_CORRUPT, "token %s has %zu bytes, expected %d", path, len,
            LACI_TCP_TOKEN);
    }
    if (derive_seed(token, purpose, seed)) {
        *out = EVP_PKEY_new_raw_private_key(
            EVP_PKEY_ED25519, NULL, seed, sizeof(seed));
    }
    OPENSSL_cleanse(token, sizeof(token));
    OPENSSL_cleanse(seed, sizeof(seed));
    if (*out == NULL) {
        return services->fail(
            LAC_ERR_UNSUPPORTED, "tcp: OpenSSL cannot derive a key");
    }
    return LAC_OK;
}
