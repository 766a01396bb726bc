// A connection to PostgreSQL with deadlines of its own: `statement_timeout` does not end the wait for a standby
// (docs/fleet.md#acknowledgement).
import Glibc
import Synchronization

/// One connection. Use it on one thread at a time; every call blocks until the answer or its deadline.
final class PostgreSQLConnection: Sendable {
    private let library: LibPQ
    private let address: LibPQ.Address
    private let warnings: Warnings

    /// The warnings since the last command; a class, because libpq calls back with its address.
    private final class Warnings: Sendable {
        let texts = Mutex<[String]>([])
    }

    /// - Parameter words: in libpq's order of precedence, the last of a name counts.
    /// - Throws: `.missingLibrary`, `.unreachable`.
    init(_ words: [(name: String, value: String)]) throws(PostgreSQLError) {
        guard let library = LibPQ.shared else { throw .missingLibrary }
        let opened = library.connect(words)
        // Before any property has its value: `deinit` does not run then.
        guard library.isOpen(opened) else {
            let message = library.message(opened).trimmed
            library.finish(opened)
            throw .unreachable(message)
        }
        (self.library, address, warnings) = (library, opened, Warnings())
        library.makeNonBlocking(address)
        let context = unsafe Unmanaged.passUnretained(warnings).toOpaque()
        unsafe library.receiveNotices(address, context: context) { context, notice in
            guard let context = unsafe context, let library = LibPQ.shared, library.field("V", of: notice) == "WARNING" else { return }
            let warnings = unsafe Unmanaged<Warnings>.fromOpaque(context).takeUnretainedValue()
            warnings.texts.withLock { $0.append(library.field("M", of: notice)) }
        }
    }

    deinit { library.finish(address) }

    /// Runs statements without parameters; returns the rows of each, in text form.
    /// - Throws: `PostgreSQLError`; after `.unreachable` and `.late` the connection is of no more use.
    @discardableResult
    func run(_ sql: String, within limit: Duration) throws(PostgreSQLError) -> [[[[UInt8]?]]] {
        warnings.texts.withLock { $0 = [] }
        guard library.send(sql, on: address) else { throw .unreachable(library.message(address)) }
        return try results(before: .now + limit)
    }

    /// Runs one statement with parameters; returns its rows in binary form.
    @discardableResult
    func run(_ sql: String, _ parameters: [PostgreSQLValue], within limit: Duration) throws(PostgreSQLError) -> [[[UInt8]?]] {
        warnings.texts.withLock { $0 = [] }
        guard library.send(sql, parameters, on: address) else { throw .unreachable(library.message(address)) }
        return try results(before: .now + limit).first ?? []
    }

    /// The warnings that the last command brought.
    var lastWarnings: [String] { warnings.texts.withLock(\.self) }

    /// Waits for a notification of the server.
    /// - Returns: true if one came before the end of `limit`.
    func notified(within limit: Duration) throws(PostgreSQLError) -> Bool {
        try wait(forWriting: false, before: .now + limit)
        guard library.consumeInput(address) else { throw .unreachable(library.message(address)) }
        var isNotified = false
        while library.takeNotification(address) { isNotified = true }
        return isNotified
    }

    private func results(before deadline: ContinuousClock.Instant) throws(PostgreSQLError) -> [[[[UInt8]?]]] {
        var (found, failure): ([[[[UInt8]?]]], PostgreSQLError?) = ([], nil)
        while true {
            try settle(before: deadline)
            guard let result = library.nextResult(address) else { break }
            defer { library.clear(result) }
            switch library.status(result) {
            case .rows: found.append(library.copy(result))
            case .command, .empty: found.append([])
            case nil: failure = failure ?? .refused(state: library.field("C", of: result), library.errorText(result).trimmed)
            }
        }
        if let failure {
            guard library.isOpen(address) else { throw .unreachable("\(failure)") }
            throw failure
        }
        return found
    }

    /// Sends what is left and reads until the next result is complete.
    private func settle(before deadline: ContinuousClock.Instant) throws(PostgreSQLError) {
        var isSent = false
        while !isSent || library.isBusy(address) {
            if !isSent {
                let left = library.flush(address)
                guard left >= 0 else { throw .unreachable(library.message(address).trimmed) }
                isSent = left == 0
                if isSent, !library.isBusy(address) { return }
            }
            guard try wait(forWriting: !isSent, before: deadline) else { throw .late }
            guard library.consumeInput(address) else { throw .unreachable(library.message(address).trimmed) }
        }
    }

    /// - Returns: false when the deadline came first.
    @discardableResult
    private func wait(forWriting: Bool, before deadline: ContinuousClock.Instant) throws(PostgreSQLError) -> Bool {
        while true {
            let left = max(0, (deadline - ContinuousClock.now) / .milliseconds(1))
            var place = pollfd(fd: library.socket(address), events: Int16(POLLIN | (forWriting ? POLLOUT : 0)), revents: 0)
            let count = unsafe poll(&place, 1, CInt(min(left, 60_000)))
            if count > 0 { return true }
            guard count == 0 || errno == EINTR else { throw .unreachable("poll: \(errno)") }
            if ContinuousClock.now >= deadline { return false }
        }
    }
}

extension String {
    fileprivate var trimmed: String { split(whereSeparator: \.isNewline).joined(separator: "; ") }
}

/// A parameter of a statement in PostgreSQL's binary form, with the number of its type in `pg_type` (src/backend/utils/adt/*recv in its
/// source; arrays: array_recv). Results come in the text form.
struct PostgreSQLValue: Sendable {
    var type: UInt32
    /// Nil for NULL.
    var bytes: [UInt8]?

    static func text(_ value: String?) -> Self { Self(type: 25, bytes: value.map { Array($0.utf8) }) }
    static func bytes(_ value: [UInt8]?) -> Self { Self(type: 17, bytes: value) }
    static func number(_ value: Int64?) -> Self { Self(type: 20, bytes: value.map { bigEndian($0) }) }

    static func texts(_ values: [String?]) -> Self { array(of: 25, values.map { $0.map { Array($0.utf8) } }) }
    static func bytes(_ values: [[UInt8]?]) -> Self { array(of: 17, values) }
    static func numbers(_ values: [Int64?]) -> Self { array(of: 20, values.map { $0.map { bigEndian($0) } }) }

    /// The types of arrays of these elements.
    private static let arrays: [UInt32: UInt32] = [25: 1009, 17: 1001, 20: 1016]

    /// One dimension, counted from 1.
    private static func array(of element: UInt32, _ values: [[UInt8]?]) -> Self {
        var bytes = bigEndian(Int32(1)) + bigEndian(Int32(values.contains { $0 == nil } ? 1 : 0)) + bigEndian(Int32(element))
        bytes += bigEndian(Int32(values.count)) + bigEndian(Int32(1))
        for value in values {
            bytes += bigEndian(Int32(value?.count ?? -1))
            bytes += value ?? []
        }
        return Self(type: arrays[element] ?? 0, bytes: bytes)
    }

    static func bigEndian<N: FixedWidthInteger>(_ number: N) -> [UInt8] {
        (0..<N.bitWidth / 8).reversed().map { UInt8(truncatingIfNeeded: number >> ($0 * 8)) }
    }
}

extension [UInt8]? {
    /// A number in text form; nil for NULL and anything else.
    var number: Int64? { self.flatMap { Int64(String(decoding: $0, as: UTF8.self)) } }
    var text: String? { self.map { String(decoding: $0, as: UTF8.self) } }

    /// Bytes from hexadecimal digits.
    var fromHex: [UInt8]? {
        guard let digits = self else { return nil }
        func value(_ digit: UInt8) -> UInt8 { digit >= 0x61 ? digit - 0x57 : digit - 0x30 }
        return stride(from: 0, to: digits.count - 1, by: 2).map { value(digits[$0]) << 4 | value(digits[$0 + 1]) }
    }
}

/// An error of the connection or of the server (https://www.postgresql.org/docs/15/errcodes-appendix.html).
enum PostgreSQLError: Error, Equatable {
    /// libpq is not installed.
    case missingLibrary
    /// No connection, or it broke.
    case unreachable(String)
    /// No answer in time. What was asked may have happened.
    case late
    /// The server refused the statement.
    case refused(state: String, String)
    /// The server gave a warning where one means that the commit does not survive what was asked for.
    case warned(String)
}

extension PostgreSQLError: CustomStringConvertible {
    var description: String {
        switch self {
        case .missingLibrary: "libpq.so.5 is not installed; install Debian's libpq5"
        case .unreachable(let detail): "PostgreSQL cannot be reached: \(detail)"
        case .late: "PostgreSQL did not answer in time"
        case .refused(let state, let detail): "PostgreSQL refused it (\(state)): \(detail)"
        case .warned(let detail): "PostgreSQL does not warrant the commit: \(detail)"
        }
    }
}
