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

    /// No response, with the reason in words.
    struct Unreachable: Error {
        let reason: String
    }

    /// The most seconds for a response.
    private static let patience = 5

    /// The response. Throws if the host cannot be reached in time.
    static func get(_ url: String) throws(Unreachable) -> Document {
        guard let handle = curl_easy_init() else { throw Unreachable(reason: "libcurl cannot create a handle") }
        defer { curl_easy_cleanup(handle) }
        let fields = curl_slist_append(nil, "Accept: application/json, application/yaml;q=0.9, */*;q=0.1")
        defer { curl_slist_free_all(fields) }
        let exchange = AdminExchange(AdminTransfer(), on: handle)
        let steps: [() -> CURLcode] = [
            { rockpool_easy_set_string(handle, CURLOPT_URL, url) },
            { rockpool_easy_set_long(handle, CURLOPT_NOSIGNAL, 1) },
            { rockpool_easy_set_long(handle, CURLOPT_FOLLOWLOCATION, 1) },
            { rockpool_easy_set_long(handle, CURLOPT_MAXREDIRS, 3) },
            { rockpool_easy_set_long(handle, CURLOPT_TIMEOUT_MS, patience * 1000) },
            { rockpool_easy_set_fields(handle, fields) },
            { exchange.perform(method: "GET") },
        ]
        if let code = steps.lazy.map({ $0() }).first(where: { $0 != CURLE_OK }) { throw Unreachable(reason: words(for: code)) }
        return Document(
            status: exchange.status, body: Array(exchange.body), cacheControl: value(of: "Cache-Control", in: handle) ?? "",
            hasETag: value(of: "ETag", in: handle) != nil)
    }

    private static func words(for code: CURLcode) -> String {
        switch code {
        case CURLE_COULDNT_RESOLVE_HOST: "its name does not resolve"
        case CURLE_COULDNT_CONNECT: "nothing answers there"
        case CURLE_OPERATION_TIMEDOUT: "it does not answer within \(patience) s"
        default: String(cString: curl_easy_strerror(code))
        }
    }

    /// The value of a field of the response.
    private static func value(of name: String, in handle: UnsafeMutableRawPointer) -> String? {
        var field: UnsafeMutablePointer<curl_header>?
        guard curl_easy_header(handle, name, 0, UInt32(CURLH_HEADER), -1, &field) == CURLHE_OK else { return nil }
        return field.flatMap { String(validatingCString: $0.pointee.value) }
    }
}
