// The functions of libpq, found at run time: a node without a fleet neither links nor loads the library
// (https://www.postgresql.org/docs/15/libpq.html).
import Glibc

/// The library of this process. Connections and results are addresses of the library's own objects, which nothing here looks into.
struct LibPQ: Sendable {
    typealias Address = UInt

    private enum Function: String, CaseIterable {
        case connect = "PQconnectdbParams", status = "PQstatus", errorMessage = "PQerrorMessage", finish = "PQfinish", socket = "PQsocket"
        case sendQuery = "PQsendQuery", sendParameters = "PQsendQueryParams", consumeInput = "PQconsumeInput", isBusy = "PQisBusy"
        case flush = "PQflush", setNonBlocking = "PQsetnonblocking", getResult = "PQgetResult", resultStatus = "PQresultStatus"
        case resultField = "PQresultErrorField", resultMessage = "PQresultErrorMessage", clear = "PQclear", rows = "PQntuples"
        case columns = "PQnfields", value = "PQgetvalue", length = "PQgetlength", isNull = "PQgetisnull", notifies = "PQnotifies"
        case freeMemory = "PQfreemem", setNoticeReceiver = "PQsetNoticeReceiver"
    }

    typealias Text = UnsafePointer<CChar>
    typealias Receiver = @convention(c) (UnsafeMutableRawPointer?, Address) -> Void

    private let addresses: [Function: UInt]

    /// Nil where libpq is not installed.
    static let shared = LibPQ()

    private init?() {
        guard let library = unsafe dlopen("libpq.so.5", RTLD_NOW | RTLD_LOCAL) else { return nil }
        var found: [Function: UInt] = [:]
        for function in Function.allCases {
            guard let symbol = unsafe dlsym(library, function.rawValue) else { return nil }
            found[function] = UInt(bitPattern: symbol)
        }
        addresses = found
    }

    private func function<F>(_ function: Function, as type: F.Type) -> F { unsafe unsafeBitCast(addresses[function] ?? 0, to: type) }

    private func number(_ name: Function, _ object: Address) -> CInt {
        function(name, as: (@convention(c) (Address) -> CInt).self)(object)
    }

    private func text(_ name: Function, _ object: Address) -> String {
        unsafe function(name, as: (@convention(c) (Address) -> Text?).self)(object).map { unsafe String(cString: $0) } ?? ""
    }
}

// MARK: - Connections

extension LibPQ {
    /// Connects; blocks for at most the `connect_timeout` among the words. The result must be finished, whatever its status.
    func connect(_ words: [(name: String, value: String)]) -> Address {
        let names = unsafe words.map { unsafe strdup($0.name) } + [nil]
        let values = unsafe words.map { unsafe strdup($0.value) } + [nil]
        defer { unsafe (names + values).forEach { unsafe free($0) } }
        typealias Words = UnsafePointer<Text?>
        let connect = unsafe function(.connect, as: (@convention(c) (Words?, Words?, CInt) -> Address).self)
        return unsafe names.map { unsafe Text($0) }.withUnsafeBufferPointer { names in
            unsafe values.map { unsafe Text($0) }.withUnsafeBufferPointer { values in
                unsafe connect(names.baseAddress, values.baseAddress, 1)
            }
        }
    }

    func isOpen(_ connection: Address) -> Bool { connection != 0 && number(.status, connection) == 0 }
    func message(_ connection: Address) -> String { text(.errorMessage, connection) }
    func socket(_ connection: Address) -> CInt { number(.socket, connection) }
    func finish(_ connection: Address) { function(.finish, as: (@convention(c) (Address) -> Void).self)(connection) }

    func makeNonBlocking(_ connection: Address) {
        _ = function(.setNonBlocking, as: (@convention(c) (Address, CInt) -> CInt).self)(connection, 1)
    }

    /// Calls `receiver` with `context` for every notice and warning of the server.
    func receiveNotices(_ connection: Address, context: UnsafeMutableRawPointer, _ receiver: @escaping Receiver) {
        let set = unsafe function(.setNoticeReceiver, as: (@convention(c) (Address, Receiver?, UnsafeMutableRawPointer?) -> UInt).self)
        _ = unsafe set(connection, receiver, context)
    }

    // MARK: - Commands

    /// Begins one or more statements without parameters.
    func send(_ sql: String, on connection: Address) -> Bool {
        unsafe function(.sendQuery, as: (@convention(c) (Address, Text?) -> CInt).self)(connection, sql) == 1
    }

    /// Begins one statement. The parameters are in PostgreSQL's binary form; the results too.
    func send(_ sql: String, _ parameters: [PostgreSQLValue], on connection: Address) -> Bool {
        typealias Send =
            @convention(c) (
                Address, Text?, CInt, UnsafePointer<UInt32>?, UnsafePointer<Text?>?, UnsafePointer<CInt>?, UnsafePointer<CInt>?, CInt
            ) -> CInt
        let send = unsafe function(.sendParameters, as: Send.self)
        let bytes: [UInt8] = parameters.flatMap { ($0.bytes ?? []) + [0] }
        let (types, lengths) = (parameters.map(\.type), parameters.map { CInt($0.bytes?.count ?? 0) })
        let forms = [CInt](repeating: 1, count: parameters.count)
        return unsafe bytes.withUnsafeBytes { buffer in
            var (pointers, offset): ([Text?], Int) = unsafe ([], 0)
            for parameter in parameters {
                let start = unsafe buffer.baseAddress.map { unsafe ($0 + offset).assumingMemoryBound(to: CChar.self) }
                unsafe pointers.append(parameter.bytes == nil ? nil : start)
                offset += (parameter.bytes?.count ?? 0) + 1
            }
            return unsafe send(connection, sql, CInt(parameters.count), types, pointers, lengths, forms, 1) == 1
        }
    }

    /// - Returns: 0 when everything was sent, 1 when more waits for the socket, -1 after an error.
    func flush(_ connection: Address) -> CInt { number(.flush, connection) }
    func consumeInput(_ connection: Address) -> Bool { number(.consumeInput, connection) == 1 }
    func isBusy(_ connection: Address) -> Bool { number(.isBusy, connection) != 0 }

    /// Takes the next result of the commands sent; nil after the last.
    func nextResult(_ connection: Address) -> Address? {
        let result = function(.getResult, as: (@convention(c) (Address) -> Address).self)(connection)
        return result == 0 ? nil : result
    }

    /// Takes one notification; returns true if there was one.
    func takeNotification(_ connection: Address) -> Bool {
        let notice = function(.notifies, as: (@convention(c) (Address) -> Address).self)(connection)
        guard notice != 0 else { return false }
        function(.freeMemory, as: (@convention(c) (Address) -> Void).self)(notice)
        return true
    }

    // MARK: - Results

    /// The kinds of `ExecStatusType` that occur here.
    enum Status: CInt { case empty = 0, command = 1, rows = 2 }

    func status(_ result: Address) -> Status? { Status(rawValue: number(.resultStatus, result)) }
    func clear(_ result: Address) { function(.clear, as: (@convention(c) (Address) -> Void).self)(result) }
    func errorText(_ result: Address) -> String { text(.resultMessage, result) }

    /// Returns a field of an error or notice: `C` its SQLSTATE, `V` its severity in English, `M` its message.
    func field(_ name: Character, of result: Address) -> String {
        let code = CInt(name.asciiValue ?? 0)
        let get = unsafe function(.resultField, as: (@convention(c) (Address, CInt) -> Text?).self)
        return unsafe get(result, code).map { unsafe String(cString: $0) } ?? ""
    }

    /// Copies the rows of a result: for each column its bytes, or nil for NULL.
    func copy(_ result: Address) -> [[[UInt8]?]] {
        let (rows, columns) = (number(.rows, result), number(.columns, result))
        typealias Number = @convention(c) (Address, CInt, CInt) -> CInt
        let value = unsafe function(.value, as: (@convention(c) (Address, CInt, CInt) -> UnsafePointer<UInt8>?).self)
        let (length, isNull) = (function(.length, as: Number.self), function(.isNull, as: Number.self))
        return (0..<rows).map { row in
            (0..<columns).map { column in
                guard isNull(result, row, column) == 0, let start = unsafe value(result, row, column) else { return nil }
                return unsafe Array(UnsafeBufferPointer(start: start, count: Int(length(result, row, column))))
            }
        }
    }
}
