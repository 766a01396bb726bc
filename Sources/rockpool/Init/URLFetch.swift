// One GET of a URL, for the probes of `rockpool init`.
import CCurl
import Foundation

/// Fetches small documents, with the system's certificates and proxies.
enum URLFetch {
    /// A response to a GET.
    struct Document {
        let status: Int
        let body: [UInt8]
        /// The value of `Cache-Control`; empty without one.
        let cacheControl: String
        let hasETag: Bool
    }

    /// The response; nil if the host cannot be reached within five seconds.
    static func get(_ url: String) -> Document? {
        guard let handle = curl_easy_init() else { return nil }
        defer { curl_easy_cleanup(handle) }
        let fields = curl_slist_append(nil, "Accept: application/json, application/yaml;q=0.9, */*;q=0.1")
        defer { curl_slist_free_all(fields) }
        let exchange = AdminExchange(AdminTransfer(), on: handle)
        let steps: [() -> CURLcode] = [
            { rockpool_easy_set_string(handle, CURLOPT_URL, url) },
            { rockpool_easy_set_long(handle, CURLOPT_NOSIGNAL, 1) },
            { rockpool_easy_set_long(handle, CURLOPT_FOLLOWLOCATION, 1) },
            { rockpool_easy_set_long(handle, CURLOPT_MAXREDIRS, 3) },
            { rockpool_easy_set_long(handle, CURLOPT_TIMEOUT_MS, 5000) },
            { rockpool_easy_set_fields(handle, fields) },
            { exchange.perform(method: "GET") },
        ]
        guard steps.allSatisfy({ $0() == CURLE_OK }) else { return nil }
        return Document(
            status: exchange.status, body: Array(exchange.body), cacheControl: value(of: "Cache-Control", in: handle) ?? "",
            hasETag: value(of: "ETag", in: handle) != nil)
    }

    /// The value of a field of the response.
    private static func value(of name: String, in handle: UnsafeMutableRawPointer) -> String? {
        var field: UnsafeMutablePointer<curl_header>?
        guard curl_easy_header(handle, name, 0, UInt32(CURLH_HEADER), -1, &field) == CURLHE_OK else { return nil }
        return field.flatMap { String(validatingCString: $0.pointee.value) }
    }
}
