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

/// Reads whole lists from the admin API, page by page (docs/reference/admin-api.md#lists).
extension AdminClient {
    /// Joins the pages of a list: `{"items": […], "next": null}`. A single page is returned as received.
    func pages(of call: AdminCall) async throws -> AdminReply {
        let first = try await send(call)
        var (items, next) = try Self.page(of: first)
        if next == nil { return first }
        while let cursor = next {
            var call = call
            call.query["cursor"] = cursor
            let (more, following) = try Self.page(of: try await send(call))
            // A page without items, or with the same cursor, would loop forever.
            if more.isEmpty || following == cursor { break }
            items += more
            next = following
        }
        let whole: [String: Any] = ["items": items, "next": NSNull()]
        return AdminReply(
            status: first.status, body: try JSONSerialization.data(withJSONObject: whole, options: [.prettyPrinted, .sortedKeys]))
    }

    private static func page(of reply: AdminReply) throws -> (items: [Any], next: String?) {
        guard let page = try? JSONSerialization.jsonObject(with: reply.body) as? [String: Any], let items = page["items"] as? [Any] else {
            throw CommandFailure(.failed, "the server's response cannot be read: it is not a list")
        }
        return (items, page["next"] as? String)
    }
}

/// A request to the running server (docs/reference/admin-api.md#conventions; problems are RFC 9457).
struct AdminCall: Hashable, Sendable {
    var method: String
    /// Absolute path with encoded segments: see `segment`.
    var path: String
    var query: [String: String] = [:]
    /// Repeated parameters, sent after those of `query`.
    var lists: [String: [String]] = [:]
    var body: ConfigDocument?
    /// A body that is already JSON, used instead of `body`.
    var json: String?

    static func get(_ path: String, query: [String: String] = [:]) -> AdminCall { AdminCall(method: "GET", path: path, query: query) }
    static func post(_ path: String, body: ConfigDocument? = nil) -> AdminCall { AdminCall(method: "POST", path: path, body: body) }
    static func put(_ path: String, body: ConfigDocument) -> AdminCall { AdminCall(method: "PUT", path: path, body: body) }
    static func delete(_ path: String, query: [String: String] = [:]) -> AdminCall { AdminCall(method: "DELETE", path: path, query: query) }

    /// Encodes a text as one path segment, so that an id cannot address another resource.
    static func segment(_ text: String) -> String { text == "." || text == ".." ? text.replacing(".", with: "%2E") : encoded(text) }

    /// The path with its query, encoded.
    var target: String {
        let single = query.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
        let repeated = lists.sorted { $0.key < $1.key }.flatMap { name, values in values.map { (name, $0) } }
        let parameters = (single + repeated).map { "\(Self.encoded($0.0))=\(Self.encoded($0.1))" }
        return parameters.isEmpty ? path : path + "?" + parameters.joined(separator: "&")
    }

    private static func encoded(_ text: String) -> String {
        text.utf8.map { byte in
            let scalar = Unicode.Scalar(byte)
            if scalar.isASCII, scalar.properties.isAlphabetic || (48...57).contains(byte) || "-._~".utf8.contains(byte) {
                return String(scalar)
            }
            return "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
        }.joined()
    }
}

/// The server's response, always a 2xx.
struct AdminReply: Hashable, Sendable {
    var status: Int
    var body: Data

    /// Decodes the body as one of our reports.
    func decoded<Report: Decodable>(as type: Report.Type = Report.self) throws -> Report {
        do {
            return try JSONDecoder().decode(type, from: body)
        } catch {
            throw CommandFailure(.failed, "the server's response cannot be read: \(error)")
        }
    }
}

/// The reason why a call has no usable response.
enum AdminFailure: Error, Hashable, CustomStringConvertible {
    /// No process listens on the socket.
    case notRunning(socket: String)
    /// No process listens on the socket, but a server of another state directory holds the port of the admin API.
    case elsewhere(socket: String, server: OtherServer)
    /// A process accepts on the socket, but did not respond in time.
    case timedOut
    /// This user may not call the server; `group` may.
    case denied(socket: String, group: String?)
    /// The transfer failed for another reason.
    case broken(String)
    /// The command itself stopped the transfer: it could not read what to send, or not write what it received.
    case stopped(String)
    /// Other operations depend on the one to be removed.
    case needed(by: [OperationReport])
    /// The server refused the request.
    case refused(status: Int, title: String?, detail: String?)

    var description: String {
        switch self {
        case .notRunning(let socket):
            "no server is running (no process listens on \(socket)); start it with: rockpool serve"
                + (Directories.workingFile == nil ? "" : "; of ./rockpool.yaml only serve and config know, name it by --config")
        case .elsewhere(let socket, let server): "no server answers on \(socket), but \(server)"
        case .timedOut: "the server did not respond in time"
        case .needed(let others): others.count.counted("other operation depends", "other operations depend") + " on it"
        case .stopped(let why): why
        case .denied(let socket, let group): "this user may not call the server at \(socket); \(Self.advice(for: group))"
        case .broken(let why): "the server cannot be called: \(why)"
        case .refused(let status, let title, let detail):
            [title ?? "the server answered \(status)", detail].compactMap(\.self).joined(separator: ": ").inOneLine
        }
    }

    var status: ExitStatus {
        switch self {
        case .notRunning, .elsewhere: .notRunning
        case .timedOut, .refused(429, _, _), .refused(503, _, _): .busy
        case .denied, .broken, .stopped, .needed, .refused: .failed
        }
    }

    /// How a user gets the right to call the server.
    static func advice(for group: String?) -> String {
        let member = group.map { ", or as a member of the group \($0): sudo adduser $USER \($0), then log in anew" }
        return "run the command with sudo" + (member ?? "")
    }

    /// True if the socket has no server: a command may work on the stores itself.
    var isNotRunning: Bool { status == .notRunning }

    /// The failure that a reply stands for; nil for a 2xx.
    init?(status: Int, body: Data) {
        if (200..<300).contains(status) { return nil }
        struct ProblemDetails: Decodable {
            var title: String?
            var detail: String?
            var dependants: [OperationReport]?
        }
        let problem = try? JSONDecoder().decode(ProblemDetails.self, from: body)
        if let dependants = problem?.dependants, !dependants.isEmpty {
            self = .needed(by: dependants)
            return
        }
        self = .refused(status: status, title: problem?.title, detail: problem?.detail)
    }
}

/// One transfer in progress, on the thread that performs it.
final class AdminExchange {
    /// The most bytes that are buffered; every report is far smaller.
    private static let limitBytes = Int.mib(256)

    private let handle: UnsafeMutableRawPointer
    private let transfer: AdminTransfer
    /// The buffered part of the response's body.
    private(set) var body = Data()
    /// The error of the source or sink that stopped the transfer.
    private(set) var failure: (any Error)?

    init(_ transfer: AdminTransfer, on handle: UnsafeMutableRawPointer) {
        self.transfer = transfer
        self.handle = handle
    }

    /// The status of the response; 0 before one has arrived.
    var status: Int {
        var status = 0
        _ = rockpool_easy_get_long(handle, CURLINFO_RESPONSE_CODE, &status)
        return status
    }

    /// Sets the callbacks and performs the transfer.
    func perform(method: String) -> CURLcode {
        let (handle, hasSource, context) = (handle, transfer.source != nil, Unmanaged.passUnretained(self).toOpaque())
        let take: curl_write_callback = { bytes, size, count, context in
            guard let bytes, let context else { return 0 }
            return Unmanaged<AdminExchange>.fromOpaque(context).takeUnretainedValue()
                .take(UnsafeRawBufferPointer(start: bytes, count: size * count))
        }
        let give: rp_data_callback = { room, size, count, context in
            guard let room, let context else { return rp_readfunc_abort }
            return Unmanaged<AdminExchange>.fromOpaque(context).takeUnretainedValue()
                .give(into: UnsafeMutableRawBufferPointer(start: room, count: size * count))
        }
        let steps: [() -> CURLcode] = [
            { rockpool_easy_set_write(handle, take, context) },
            { hasSource ? rp_set_long(handle, CURLOPT_UPLOAD, 1) : CURLE_OK },
            { hasSource ? rp_set_data_callback(handle, CURLOPT_READFUNCTION, give) : CURLE_OK },
            { hasSource ? rp_set_pointer(handle, CURLOPT_READDATA, context) : CURLE_OK },
            { rockpool_easy_set_string(handle, CURLOPT_CUSTOMREQUEST, method) },
            { curl_easy_perform(handle) },
        ]
        return steps.lazy.map { $0() }.first { $0 != CURLE_OK } ?? CURLE_OK
    }

    private func give(into room: UnsafeMutableRawBufferPointer) -> Int {
        do {
            return try transfer.source?(room) ?? 0
        } catch {
            failure = error
            return rp_readfunc_abort
        }
    }

    private func take(_ bytes: UnsafeRawBufferPointer) -> Int {
        do {
            if let sink = transfer.sink, (200..<300).contains(status) {
                try sink(bytes)
            } else {
                guard body.count + bytes.count <= Self.limitBytes else { return 0 }
                body.append(contentsOf: bytes)
            }
            return bytes.count
        } catch {
            failure = error
            return 0
        }
    }
}

/// The source of a streamed request body and the sink of a streamed response body. Called on the transfer's own thread.
struct AdminTransfer: Sendable {
    /// Writes the next bytes of the request's body into the buffer and returns their number; 0 ends the body.
    var source: (@Sendable (UnsafeMutableRawBufferPointer) throws -> Int)?
    /// Takes the next bytes of a 2xx response's body.
    var sink: (@Sendable (UnsafeRawBufferPointer) throws -> Void)?
}
