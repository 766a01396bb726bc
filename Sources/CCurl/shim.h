// libcurl for Swift: curl_easy_setopt and friends are variadic, which Swift cannot call; each wrapper here fixes one type.
#pragma once
#include <curl/curl.h>
#include <dlfcn.h>
#include "easy.h"
#include <stdint.h>

static inline CURLcode rp_set_long(CURL *easy, CURLoption option, long value) { return curl_easy_setopt(easy, option, value); }
static inline CURLcode rp_set_off(CURL *easy, CURLoption option, int64_t value) { return curl_easy_setopt(easy, option, (curl_off_t)value); }
static inline CURLcode rp_set_string(CURL *easy, CURLoption option, const char *value) { return curl_easy_setopt(easy, option, value); }
static inline CURLcode rp_set_list(CURL *easy, CURLoption option, struct curl_slist *value) { return curl_easy_setopt(easy, option, value); }
static inline CURLcode rp_set_pointer(CURL *easy, CURLoption option, void *value) { return curl_easy_setopt(easy, option, value); }

typedef size_t (*rp_data_callback)(char *, size_t, size_t, void *);
typedef curl_socket_t (*rp_open_callback)(void *, curlsocktype, struct curl_sockaddr *);
typedef int (*rp_close_callback)(void *, curl_socket_t);
typedef int (*rp_seek_callback)(void *, curl_off_t, int);
typedef int (*rp_prereq_callback)(void *, char *, char *, int, int);
static inline CURLcode rp_set_data_callback(CURL *easy, CURLoption option, rp_data_callback callback) { return curl_easy_setopt(easy, option, callback); }
static inline CURLcode rp_set_open_callback(CURL *easy, rp_open_callback callback) { return curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, callback); }
static inline CURLcode rp_set_close_callback(CURL *easy, rp_close_callback callback) { return curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, callback); }
static inline CURLcode rp_set_seek_callback(CURL *easy, rp_seek_callback callback) { return curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, callback); }
static inline CURLcode rp_set_prereq_callback(CURL *easy, rp_prereq_callback callback) { return curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, callback); }

static inline CURLcode rp_get_long(CURL *easy, CURLINFO info, long *value) { return curl_easy_getinfo(easy, info, value); }
/// OpenSSL's object of a transfer's connection, while it runs; NULL without TLS, and where libcurl uses another library.
static inline void *rp_get_ssl(CURL *easy) {
    struct curl_tlssessioninfo *session = NULL;
    if (curl_easy_getinfo(easy, CURLINFO_TLS_SSL_PTR, &session) != CURLE_OK || session == NULL) return NULL;
    return session->backend == CURLSSLBACKEND_OPENSSL ? session->internals : NULL;
}
/// 1 if OpenSSL holds bytes of a connection that nobody has read. The library is libcurl's, found in this process.
static inline int rp_ssl_has_pending(void *ssl) {
    static int (*has_pending)(const void *);
    if (has_pending == NULL) has_pending = (int (*)(const void *))dlsym(NULL, "SSL_has_pending");
    return ssl != NULL && has_pending != NULL && has_pending(ssl);
}
/// 1 if the subjectAltName of the peer's certificate names `host`, a name or an address (RFC 9525 §6.3); else 0, also where the library that
/// could say so is not found. The common name is no identity, although libcurl takes it where no other name is present.
static inline int rp_ssl_names(void *ssl, const char *host, size_t length, int is_address) {
    static void *(*peer)(const void *);
    static int (*check_host)(void *, const char *, size_t, unsigned, char **);
    static int (*check_address)(void *, const char *, unsigned);
    static void (*release)(void *);
    if (release == NULL) {
        peer = (void *(*)(const void *))dlsym(NULL, "SSL_get1_peer_certificate");
        if (peer == NULL) peer = (void *(*)(const void *))dlsym(NULL, "SSL_get_peer_certificate");
        check_host = (int (*)(void *, const char *, size_t, unsigned, char **))dlsym(NULL, "X509_check_host");
        check_address = (int (*)(void *, const char *, unsigned))dlsym(NULL, "X509_check_ip_asc");
        release = (void (*)(void *))dlsym(NULL, "X509_free");
    }
    if (peer == NULL || check_host == NULL || check_address == NULL || release == NULL) return 0;
    void *certificate = peer(ssl);
    if (certificate == NULL) return 0;
    const unsigned never_check_subject = 0x20;
    int found = is_address ? check_address(certificate, host, 0) : check_host(certificate, host, length, never_check_subject, NULL);
    release(certificate);
    return found == 1;
}
/// The socket a transfer used last; CURL_SOCKET_BAD once it is closed.
static inline curl_socket_t rp_get_socket(CURL *easy) {
    curl_socket_t socket = CURL_SOCKET_BAD;
    return curl_easy_getinfo(easy, CURLINFO_ACTIVESOCKET, &socket) == CURLE_OK ? socket : CURL_SOCKET_BAD;
}
static inline CURLcode rp_get_off(CURL *easy, CURLINFO info, int64_t *value) {
    curl_off_t got = 0;
    CURLcode code = curl_easy_getinfo(easy, info, &got);
    *value = got;
    return code;
}
static inline CURLcode rp_get_pointer(CURL *easy, CURLINFO info, void **value) { return curl_easy_getinfo(easy, info, (char **)value); }

typedef int (*rp_socket_callback)(CURL *, curl_socket_t, int, void *, void *);
typedef int (*rp_timer_callback)(CURLM *, long, void *);
static inline CURLMcode rp_multi_long(CURLM *multi, CURLMoption option, long value) { return curl_multi_setopt(multi, option, value); }
static inline CURLMcode rp_multi_pointer(CURLM *multi, CURLMoption option, void *value) { return curl_multi_setopt(multi, option, value); }
static inline CURLMcode rp_multi_socket_callback(CURLM *multi, rp_socket_callback callback) { return curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, callback); }
static inline CURLMcode rp_multi_timer_callback(CURLM *multi, rp_timer_callback callback) { return curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, callback); }

static inline CURLcode rp_message_result(CURLMsg *message) { return message->data.result; }

// Macros that Swift does not import.
static const size_t rp_readfunc_pause = CURL_READFUNC_PAUSE;
static const size_t rp_readfunc_abort = CURL_READFUNC_ABORT;
static const size_t rp_writefunc_pause = CURL_WRITEFUNC_PAUSE;
static const int rp_prereqfunc_ok = CURL_PREREQFUNC_OK, rp_prereqfunc_abort = CURL_PREREQFUNC_ABORT;
static const curl_socket_t rp_socket_bad = CURL_SOCKET_BAD;
static const int rp_poll_in = CURL_POLL_IN, rp_poll_out = CURL_POLL_OUT, rp_poll_inout = CURL_POLL_INOUT, rp_poll_remove = CURL_POLL_REMOVE;
static const int rp_select_in = CURL_CSELECT_IN, rp_select_out = CURL_CSELECT_OUT, rp_select_err = CURL_CSELECT_ERR;
static const int rp_socket_timeout = CURL_SOCKET_TIMEOUT;
