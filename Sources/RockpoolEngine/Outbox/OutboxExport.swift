// Exports the outbox as a stream, with at most one body in memory (docs/outbox.md#export *export*).
import HTTPTypes
package import NIOCore
import RockpoolCore
package import RockpoolStore

/// Writes operations as lines of JSON, as curl commands, or as an HTTP Archive. Credentials are never included. Query parameters that look
/// like secrets are redacted unless `withSecrets` is set.
package struct OutboxExport: Sendable {
    /// The output formats.
    package enum Format: String, CaseIterable, Sendable { case jsonl, curl, har }

    private static let pageRows = 100

    private let data: DataStore
    private let active: ActiveConfiguration
    private let format: Format
    private let filter: OperationFilter
    private let withSecrets: Bool

    /// - Parameters:
    ///   - filter: its cursor and limit are ignored, because an export is complete.
    ///   - withSecrets: true to write URLs unredacted.
    package init(data: DataStore, active: ActiveConfiguration, format: Format, filter: OperationFilter, withSecrets: Bool = false) {
        self.data = data
        self.active = active
        self.format = format
        self.filter = filter
        self.withSecrets = withSecrets
    }

    /// The media type of the output.
    package var contentType: String {
        switch format {
        case .jsonl: "application/jsonl"
        case .curl: "text/x-shellscript; charset=utf-8"
        case .har: "application/json"
        }
    }

    /// Writes the export piece by piece. An operation that changes meanwhile is written in its state at that time.
    package func run(_ write: (ByteBuffer) async throws -> Void) async throws {
        if format == .har { try await write(ByteBuffer(string: HAREntry.opening(version: "1"))) }
        var (filter, isFirst) = (filter, true)
        filter.limit = Self.pageRows
        filter.cursor = nil
        repeat {
            let page = try await self.data.operations(filter)
            for light in page.items {
                // Write an operation even if it left the filtered states after the page was read, because the page contained it.
                guard let operation = try await self.data.operation(id: light.id) else { continue }
                try await write(try await piece(operation.shown(withSecrets: withSecrets), isFirst: isFirst))
                isFirst = false
            }
            filter.cursor = page.next
        } while filter.cursor != nil
        if format == .har { try await write(ByteBuffer(string: HAREntry.closing)) }
    }

    private func piece(_ operation: QueuedWrite, isFirst: Bool) async throws -> ByteBuffer {
        switch format {
        case .jsonl: ByteBuffer(bytes: try await self.data.line(of: operation, withSecrets: withSecrets).serialized() + [0x0A])
        case .curl: ByteBuffer(string: CurlCommand.text(of: try await exported(operation)))
        case .har:
            ByteBuffer(bytes: (isFirst ? [] : [UInt8(ascii: ",")]) + HAREntry.json(of: try await exported(operation)).serialized())
        }
    }

    private func exported(_ operation: QueuedWrite) async throws -> ExportedOperation {
        var request = operation.request
        for name in HTTPField.Name.keptWithWrites { request.fields[name] = nil }
        if let upstream = self.active.routes.upstream(named: operation.upstream) {
            request.setKey(operation.idempotencyKey, isClients: operation.keyIsClients, for: upstream.idempotency)
        }
        let last = try await self.data.attempts(of: operation).last
        return ExportedOperation(
            operation, request: request, body: try await self.data.bytes(of: operation.body), startedAt: last?.startedAt,
            endedAt: last?.endedAt)
    }
}

/// Takes what an export has written into this outbox (docs/outbox.md#import).
extension OutboxCommands {
    /// Takes in operations and publishes those that are new.
    /// - Throws: `PortableOperation.Fault`, `Problem`, `DataStoreError`. Nothing has changed then.
    package func takeIn(_ operations: [PortableOperation]) async throws -> TakenIn {
        let taken = try await problems { try await data.takeIn(operations) }
        let open = taken.operations.filter { !$0.state.hasEnded }
        notifier.adoptHosts(of: open.map { ($0.upstream, $0.request.origin) })
        for operation in open { notifier.tell(operation) }
        events.wake()
        return taken
    }
}
