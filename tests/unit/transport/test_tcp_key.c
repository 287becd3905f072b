// SPDX-License-Identifier: MIT
// Keys: one text for each public key, files that only their owner can read, and
// the keys that are derived from a token.
#define _POSIX_C_SOURCE 200809L
#include "lac_test.h"

#include <openssl/pem.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "transport/tcp/key.h"

static const laci_services *const services = &laci_transport_services;

// The working directory of the tests.
static char folder[64];

static int setup(void **state)
{
    (void)state;
    (void)snprintf(folder, sizeof(folder), "/tmp/lac_test_XXXXXX");
    return mkdtemp(folder) == NULL || chdir(folder) != 0;
}

static int teardown(void **state)
{
    static const char *const made[] = {"key",     "other", "password",
                                       "a/b/key", "a/b",   "a"};
    (void)state;
    for (size_t i = 0; i < sizeof(made) / sizeof(made[0]); i++) {
        (void)remove(made[i]);
    }
    return chdir("/") != 0 || rmdir(folder) != 0;
}

static void write_file(
    const char *path, const void *bytes, size_t len, int mode)
{
    (void)unlink(path);
    FILE *const file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, len, file), len);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, (mode_t)mode), 0);
}

static void a_key_has_one_text(void **state)
{
    (void)state;
    uint8_t key[LACI_TCP_KEY], again[LACI_TCP_KEY];
    char text[LAC_KEY_TEXT_SIZE];
    for (int i = 0; i < LACI_TCP_KEY; i++) {
        key[i] = (uint8_t)(7 * i + 3);
    }
    laci_tcp_key_text(key, text);
    assert_int_equal(strlen(text), LAC_KEY_TEXT_SIZE - 1);
    assert_true(laci_tcp_key_parse(text, strlen(text), again));
    assert_memory_equal(key, again, sizeof(key));
}

static void other_texts_are_no_keys(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",   // no padding
        "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA==", // too long
        "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",  // 33 bytes
        "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA==",  // 31 bytes
        "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAB=",  // stray bits
        "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA-=",  // of another code
        "AAAAAAAAAAAAAAAAAAAAA=AAAAAAAAAAAAAAAAAAAAA=",  // padding inside
        " AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",  // a space
        "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n", // a line
        "AAAAAAAAAAAAAAAAAAA-\xff\xff\xff\xff-AAAAAAAAAAAAAAAAAA=",
    };
    uint8_t key[LACI_TCP_KEY];
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (laci_tcp_key_parse(texts[i], strlen(texts[i]), key)) {
            fail_msg("'%s' is a key", texts[i]);
        }
    }
    char nul[] = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
    nul[10] = '\0';
    assert_false(laci_tcp_key_parse(nul, sizeof(nul) - 1, key));
}

static void a_key_file_is_private_and_never_replaced(void **state)
{
    (void)state;
    char text[LAC_KEY_TEXT_SIZE], again[LAC_KEY_TEXT_SIZE];
    struct stat about;
    assert_ok(laci_tcp_key_create(services, "key", text));
    assert_int_equal(stat("key", &about), 0);
    assert_int_equal(about.st_mode & 07777, 0600);
    assert_ok(laci_tcp_key_read(services, "key", again));
    assert_string_equal(text, again);
    assert_fails(
        laci_tcp_key_create(services, "key", again), LAC_ERR_INVALID,
        "key key exists, and is never overwritten");
    assert_ok(laci_tcp_key_create(services, "a/b/key", again));
    assert_string_not_equal(text, again);
}

static void key_files_that_cannot_be_used_are_named(void **state)
{
    (void)state;
    char text[LAC_KEY_TEXT_SIZE];
    static char large[5000];
    assert_fails(
        laci_tcp_key_read(services, "other", text), LAC_ERR_NOTFOUND,
        "key other does not exist; `laconic key` makes one");
    assert_ok(laci_tcp_key_create(services, "other", text));
    assert_int_equal(chmod("other", 0640), 0);
    assert_fails(
        laci_tcp_key_read(services, "other", text), LAC_ERR_INVALID,
        "key other has mode 0640: others can use it, expected 0600");
    write_file("other", "", 0, 0600);
    assert_fails(
        laci_tcp_key_read(services, "other", text), LAC_ERR_CORRUPT,
        "key other is not an Ed25519 private key as `laconic key` writes it");
    write_file("other", large, sizeof(large), 0600);
    assert_fails(
        laci_tcp_key_read(services, "other", text), LAC_ERR_CORRUPT,
        "key other has 4096 bytes or more, expected fewer");
    assert_fails(
        laci_tcp_key_read(services, ".", text), LAC_ERR_INVALID,
        "key .: Is a directory");
}

// Writes a key of any type, encrypted if there is a password.
static void write_pem(const char *path, EVP_PKEY *key, const char *password)
{
    FILE *const file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fchmod(fileno(file), 0600), 0);
    assert_int_equal(
        PEM_write_PKCS8PrivateKey(
            file, key, password == NULL ? NULL : EVP_aes_128_cbc(), password,
            password == NULL ? 0 : (int)strlen(password), NULL, NULL),
        1);
    assert_int_equal(fclose(file), 0);
    EVP_PKEY_free(key);
}

// OpenSSL would read the password from the terminal, or else from stdin.
static void nobody_is_asked_for_a_password(void **state)
{
    (void)state;
    char text[LAC_KEY_TEXT_SIZE];
    write_file("password", "secret\n", 7, 0600);
    (void)setsid();
    assert_non_null(freopen("password", "rb", stdin));
    (void)unlink("other");
    write_pem("other", EVP_PKEY_Q_keygen(NULL, NULL, "ED25519"), "secret");
    assert_fails(
        laci_tcp_key_read(services, "other", text), LAC_ERR_CORRUPT,
        "key other is not an Ed25519 private key as `laconic key` writes it");
    assert_int_equal(fgetc(stdin), 's');
}

static void keys_of_other_types_are_refused(void **state)
{
    (void)state;
    char text[LAC_KEY_TEXT_SIZE];
    (void)unlink("other");
    write_pem("other", EVP_PKEY_Q_keygen(NULL, NULL, "X25519"), NULL);
    assert_fails(
        laci_tcp_key_read(services, "other", text), LAC_ERR_CORRUPT,
        "key other is not an Ed25519 private key as `laconic key` writes it");
}

static void derive(const char *path, const char *purpose, uint8_t *public_out)
{
    EVP_PKEY *key = NULL;
    assert_ok(laci_tcp_key_derive(services, path, purpose, &key));
    assert_true(laci_tcp_key_public(key, public_out));
    EVP_PKEY_free(key);
}

static void each_purpose_has_a_key_of_the_token(void **state)
{
    (void)state;
    uint8_t a[LACI_TCP_KEY], again[LACI_TCP_KEY], b[LACI_TCP_KEY];
    struct stat about;
    (void)unlink("other");
    assert_ok(laci_tcp_token_create(services, "other"));
    assert_int_equal(stat("other", &about), 0);
    assert_int_equal(about.st_mode & 07777, 0600);
    assert_int_equal(about.st_size, LACI_TCP_TOKEN);
    assert_fails(
        laci_tcp_token_create(services, "other"), LAC_ERR_INVALID,
        "token other exists, and is never overwritten");
    derive("other", "one", a);
    derive("other", "one", again);
    derive("other", "two", b);
    assert_memory_equal(a, again, sizeof(a));
    assert_memory_not_equal(a, b, sizeof(a));
}

// docs/format.md: the seed is HKDF-SHA256 of the token without a salt. The
// value was computed with Python's hmac and another implementation of Ed25519.
static void a_derived_key_is_that_of_the_format(void **state)
{
    (void)state;
    uint8_t token[LACI_TCP_TOKEN], key[LACI_TCP_KEY];
    char text[LAC_KEY_TEXT_SIZE];
    for (int i = 0; i < LACI_TCP_TOKEN; i++) {
        token[i] = (uint8_t)i;
    }
    write_file("other", token, sizeof(token), 0600);
    derive("other", "laconic tcp 1 rendezvous: worker 0", key);
    laci_tcp_key_text(key, text);
    assert_string_equal(text, "rRvwV6dKOtC8wxFQz3wPEbjYPXomUyFSlp4jpXcaHo0=");
}

static void tokens_have_32_bytes(void **state)
{
    (void)state;
    static const char bytes[33];
    EVP_PKEY *key = NULL;
    write_file("other", bytes, 31, 0600);
    assert_fails(
        laci_tcp_key_derive(services, "other", "x", &key), LAC_ERR_CORRUPT,
        "token other has 31 bytes, expected 32");
    write_file("other", bytes, 33, 0600);
    assert_fails(
        laci_tcp_key_derive(services, "other", "x", &key), LAC_ERR_CORRUPT,
        "token other has 33 bytes, expected 32");
    write_file("other", bytes, 32, 0604);
    assert_fails(
        laci_tcp_key_derive(services, "other", "x", &key), LAC_ERR_INVALID,
        "token other has mode 0604: others can use it, expected 0600");
    assert_null(key);
}

// Only root can give a file to another user.
static void files_of_another_user_are_refused(void **state)
{
    (void)state;
    char text[LAC_KEY_TEXT_SIZE];
    EVP_PKEY *key = NULL;
    if (getuid() != 0) {
        skip();
    }
    (void)unlink("other");
    assert_ok(laci_tcp_key_create(services, "other", text));
    assert_int_equal(chown("other", 4321, 0), 0);
    assert_fails(
        laci_tcp_key_read(services, "other", text), LAC_ERR_INVALID,
        "key other belongs to user 4321, expected this user (0) or root");
    assert_int_equal(chmod(".", 0755), 0);
    assert_int_equal(seteuid(4321), 0);
    const lac_status as_owner = laci_tcp_key_read(services, "other", text);
    assert_int_equal(seteuid(0), 0);
    assert_ok(as_owner);
    (void)unlink("other");
    assert_ok(laci_tcp_token_create(services, "other"));
    assert_int_equal(chown("other", 4321, 0), 0);
    assert_fails(
        laci_tcp_key_derive(services, "other", "x", &key), LAC_ERR_INVALID,
        "token other belongs to user 4321, expected this user (0) or root");
    assert_null(key);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_has_one_text),
        cmocka_unit_test(other_texts_are_no_keys),
        cmocka_unit_test(a_key_file_is_private_and_never_replaced),
        cmocka_unit_test(key_files_that_cannot_be_used_are_named),
        cmocka_unit_test(nobody_is_asked_for_a_password),
        cmocka_unit_test(keys_of_other_types_are_refused),
        cmocka_unit_test(each_purpose_has_a_key_of_the_token),
        cmocka_unit_test(a_derived_key_is_that_of_the_format),
        cmocka_unit_test(tokens_have_32_bytes),
        cmocka_unit_test(files_of_another_user_are_refused),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
