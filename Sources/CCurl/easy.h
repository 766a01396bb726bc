// Typed faces of curl_easy_setopt and curl_easy_getinfo: variadic C cannot be called from Swift.
#ifndef ROCKPOOL_CCURL_EASY_H
#define ROCKPOOL_CCURL_EASY_H

#include <curl/curl.h>

/// A text option; libcurl keeps its own copy (except of CURLOPT_POSTFIELDS).
static inline CURLcode rockpool_easy_set_string(CURL *handle, CURLoption option, const char *value) {
    return curl_easy_setopt(handle, option, value);
}

static inline CURLcode rockpool_easy_set_long(CURL *handle, CURLoption option, long value) {
    return curl_easy_setopt(handle, option, value);
}

/// The bytes of a request's body, copied.
static inline CURLcode rockpool_easy_set_body(CURL *handle, const void *bytes, curl_off_t length) {
    CURLcode code = curl_easy_setopt(handle, CURLOPT_POSTFIELDSIZE_LARGE, length);
    return code != CURLE_OK ? code : curl_easy_setopt(handle, CURLOPT_COPYPOSTFIELDS, bytes);
}

/// The request's fields; the list must outlive the transfer.
static inline CURLcode rockpool_easy_set_fields(CURL *handle, struct curl_slist *fields) {
    return curl_easy_setopt(handle, CURLOPT_HTTPHEADER, fields);
}

/// Who takes the reply's body; `context` is its last argument.
static inline CURLcode rockpool_easy_set_write(CURL *handle, curl_write_callback callback, void *context) {
    CURLcode code = curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, callback);
    return code != CURLE_OK ? code : curl_easy_setopt(handle, CURLOPT_WRITEDATA, context);
}

static inline CURLcode rockpool_easy_get_long(CURL *handle, CURLINFO info, long *value) {
    return curl_easy_getinfo(handle, info, value);
}

#endif
