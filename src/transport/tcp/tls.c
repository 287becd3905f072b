// SPDX-License-Identifier: MIT
// Sets TLS up: version, ciphers, certificate and the check of the other end.
#include "transport/tcp/tls.h"

#include <openssl/err.h>
#include <openssl/x509.h>
#include <string.h>

#include "base/fail.h"
#include "transport/tcp/connection.h"

// Accepts a certificate if its key is the expected one. TLS itself proves that
// the other end has the private key.
static int verify(X509_STORE_CTX *store, void *unused)
{
    uint8_t key[LACI_TCP_KEY];
    (void)unused;
    SSL *const ssl =
        X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());
    laci_tcp_pin *const pin = SSL_get_app_data(ssl);
    X509 *const certificate = X509_STORE_CTX_get0_cert(store);
    const EVP_PKEY *const shown =
        certificate == NULL ? NULL : X509_get0_pubkey(certificate);
    uint32_t rank = LAC_RANK_ANY;
    if (shown != NULL && laci_tcp_key_public(shown, key)) {
        rank = laci_tcp_roster_find(pin->roster, key);
    }
    if (rank == LAC_RANK_ANY ||
        (pin->expected != LAC_RANK_ANY && pin->expected != rank)) {
        pin->refused = true;
        X509_STORE_CTX_set_error(store, X509_V_ERR_CERT_REJECTED);
        return 0;
    }
    pin->found = rank;
    X509_STORE_CTX_set_error(store, X509_V_OK);
    return 1;
}

// A certificate needs dates, but no clock decides about a worker: it is valid
// always.
static X509 *make_certificate(EVP_PKEY *key)
{
    X509 *const made = X509_new();
    if (made != NULL && X509_set_version(made, X509_VERSION_3) == 1 &&
        ASN1_INTEGER_set(X509_get_serialNumber(made), 1) == 1 &&
        ASN1_TIME_set_string(X509_getm_notBefore(made), "19700101000000Z") ==
            1 &&
        ASN1_TIME_set_string(X509_getm_notAfter(made), "99991231235959Z") ==
            1 &&
        X509_set_pubkey(made, key) == 1 && X509_sign(made, key, NULL) > 0) {
        return made;
    }
    X509_free(made);
    return NULL;
}

static bool configure(SSL_CTX *context, X509 *certificate, EVP_PKEY *key)
{
    (void)SSL_CTX_set_mode(
        context,
        SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    (void)SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_verify(
        context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    SSL_CTX_set_cert_verify_callback(context, verify, NULL);
    return SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) == 1 &&
           SSL_CTX_set_ciphersuites(
               context,
               "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256") == 1 &&
           SSL_CTX_set_num_tickets(context, 0) == 1 &&
           SSL_CTX_set1_groups_list(context, "X25519") == 1 &&
           SSL_CTX_use_certificate(context, certificate) == 1 &&
           SSL_CTX_use_PrivateKey(context, key) == 1;
}

lac_status laci_tcp_tls_open(
    const laci_services *services, EVP_PKEY *key, laci_tcp_tls *out)
{
    X509 *const certificate = make_certificate(key);
    *out = (laci_tcp_tls){
        .context = SSL_CTX_new(TLS_method()),
        .method = laci_tcp_bio_method(),
    };
    const bool good = certificate != NULL && out->context != NULL &&
                      out->method != NULL &&
                      configure(out->context, certificate, key);
    X509_free(certificate);
    if (!good) {
        const char *const reason = ERR_reason_error_string(ERR_peek_error());
        ERR_clear_error();
        laci_tcp_tls_close(out);
        return services->fail(
            LAC_ERR_UNSUPPORTED, "tcp: OpenSSL cannot prepare TLS 1.3: %s",
            reason == NULL ? "no memory" : reason);
    }
    return LAC_OK;
}

void laci_tcp_tls_close(laci_tcp_tls *tls)
{
    SSL_CTX_free(tls->context);
    BIO_meth_free(tls->method);
    *tls = (laci_tcp_tls){0};
}

bool laci_tcp_tls_binding(SSL *ssl, uint8_t out[32])
{
    static const char label[] = "EXPORTER-laconic-hello";
    return SSL_export_keying_material(
               ssl, out, 32, label, sizeof(label) - 1, NULL, 0, 0) == 1;
}
