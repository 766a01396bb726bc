// Calls the running server over its Unix socket, with HTTP and libcurl (docs/reference/cli.md#calling: never over the network).
import CCurl
import Foundation
import RockpoolCore

/// A client of the server's Unix socket.
struct AdminClient: Sendable {
    let socket: String
    /// The token beside the socket, which the socket does not need; nil if its file cannot be read.
    let token: String?
    /// Every socket that was looked for, for the message that no server runs.
    var searched: [String] = []
    /// `host:port` where a server of another state directory may answer; nil: it is not looked for.
    var listen: String?

    init(socket: String) {
        self.socket = socket
        let directory = URL(fileURLWithPath: socket).deletingLastPathComponent().path
        let text = FileManager.default.contents(atPath: directory + "/admin-token").flatMap { String(data: $0, encoding: .utf8) }
        token = text.map { $0.filter { !$0.isWhitespace } }
    }

    /// A client of `admin.sock` in a state directory.
    init(stateDirectory: String) { self.init(socket: stateDirectory + "/admin.sock") }

    /// Sends one call. `timeout` covers the whole exchange; `.forever` sets no limit.
    func send(_ call: AdminCall, timeout: TimeSpan = .seconds(30)) async throws -> AdminReply {
        try await send(call, through: AdminTransfer(), timeout: timeout)
    }

    /// Sends one call with streamed bodies: `transfer` supplies the request's body and takes the response's.
    func send(_ call: AdminCall, through transfer: AdminTransfer, timeout: TimeSpan = .forever) async throws -> AdminReply {
        // A thread of its own: libcurl blocks, and the caller may share its threads with the server (`rockpool demo`).
        try await withCheckedThrowingContinuation { continuation in
            Thread.detachNewThread {
                continuation.resume(with: Result { try perform(call, through: transfer, timeout: timeout) })
            }
        }
    }

    private func perform(_ call: AdminCall, through transfer: AdminTransfer, timeout: TimeSpan) throws(AdminFailure) -> AdminReply {
        guard socket.utf8.count <= 107 else { throw .broken("\(socket) is longer than the 107 bytes of a socket's path") }
        guard let handle = curl_easy_init() else { throw .broken("libcurl cannot create a handle") }
        defer { curl_easy_cleanup(handle) }
        let fields = fieldList(for: call)
        defer { curl_slist_free_all(fields) }
        var code = prepare(handle, for: call, timeout: timeout)
        if code == CURLE_OK { code = rockpool_easy_set_fields(handle, fields) }
        let exchange = AdminExchange(transfer, on: handle)
        if code == CURLE_OK { code = exchange.perform(method: call.method) }
        if let failure = exchange.failure { throw .stopped("\(failure)") }
        guard code == CURLE_OK else { throw failure(code, of: handle) }
        if let failure = AdminFailure(status: exchange.status, body: exchange.body) { throw failure }
        return AdminReply(status: exchange.status, body: exchange.body)
    }

    /// Sets the options of the call and stops at the first one libcurl refuses: without the socket option nothing may be sent.
    private func prepare(_ handle: UnsafeMutableRawPointer, for call: AdminCall, timeout: TimeSpan) -> CURLcode {
        let steps: [() -> CURLcode] = [
            { rockpool_easy_set_string(handle, CURLOPT_UNIX_SOCKET_PATH, socket) },
            { rockpool_easy_set_string(handle, CURLOPT_PROXY, "") },
            { rockpool_easy_set_string(handle, CURLOPT_URL, "http://localhost" + call.target) },
            { rockpool_easy_set_long(handle, CURLOPT_NOSIGNAL, 1) },
            { rockpool_easy_set_long(handle, CURLOPT_CONNECTTIMEOUT_MS, 2000) },
            { rockpool_easy_set_long(handle, CURLOPT_TIMEOUT_MS, timeout == .forever ? 0 : Int(clamping: timeout.milliseconds)) },
            {
                guard let json = call.json ?? call.body?.json() else { return CURLE_OK }
                return rockpool_easy_set_body(handle, json, curl_off_t(json.utf8.count))
            },
        ]
        return steps.lazy.map { $0() }.first { $0 != CURLE_OK } ?? CURLE_OK
    }

    /// The request's header fields; the caller frees them.
    private func fieldList(for call: AdminCall) -> UnsafeMutablePointer<curl_slist>? {
        var fields = ["Accept: application/json", "Expect:"]
        if call.body != nil || call.json != nil { fields.append("Content-Type: application/json") }
        if let token { fields.append("Authorization: Bearer \(token)") }
        return fields.reduce(nil) { curl_slist_append($0, $1) }
    }

    private var notRunning: AdminFailure {
        if let other = listen.flatMap(OtherServer.init(at:)) { return .elsewhere(socket: socket, server: other) }
        return .notRunning(socket: searched.isEmpty ? socket : searched.joined(separator: ", "))
    }

    /// The group that may use the socket; nil without one, and where this user cannot know.
    var groupOfSocket: String? {
        let attributes = try? FileManager.default.attributesOfItem(atPath: socket)
        guard let mode = (attributes?[.posixPermissions] as? NSNumber)?.intValue, mode & 0o020 != 0 else { return nil }
        return attributes?[.groupOwnerAccountName] as? String
    }

    private func failure(_ code: CURLcode, of handle: UnsafeMutableRawPointer) -> AdminFailure {
        if code == CURLE_OPERATION_TIMEDOUT { return .timedOut }
        var number = 0
        _ = rockpool_easy_get_long(handle, CURLINFO_OS_ERRNO, &number)
        if code == CURLE_COULDNT_CONNECT {
            // Only these codes mean that no server listens; a socket with denied access may still have one.
            if [Int(ENOENT), Int(ECONNREFUSED), Int(ENOTDIR)].contains(number) { return notRunning }
            if number == Int(EACCES) { return .denied(socket: socket, group: groupOfSocket) }
            return .broken("\(socket): \(String(cString: strerror(Int32(clamping: number))))")
        }
        return .broken(String(cString: curl_easy_strerror(code)))
    }
}
