// A list of strings that libcurl reads.
import CCurl

/// A list of lines that libcurl reads during a transfer.
@safe final class CurlList {
    private(set) var first: UnsafeMutablePointer<curl_slist>?

    init() {}

    func append(_ line: String) { unsafe first = curl_slist_append(first, line) }

    /// Appends a line that is not UTF-8.
    func append(_ line: [UInt8]) {
        unsafe (line + [0]).withUnsafeBytes { bytes in
            unsafe first = curl_slist_append(first, bytes.bindMemory(to: CChar.self).baseAddress)
        }
    }

    deinit { unsafe curl_slist_free_all(first) }
}
