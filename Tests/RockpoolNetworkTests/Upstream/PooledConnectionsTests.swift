// Idle sockets in every order in which transfers start, pause, end and are collected (RFC 9112 §9.3).
import CCurl
import RockpoolCore
import RockpoolTesting
import Testing

@testable import RockpoolNetwork

/// A model of libcurl's connection pool: a finished transfer returns its connection at once, the next transfer may take it, and the
/// finished one is collected later. The registration of a paused transfer's socket in the event loop makes no difference here.
private struct PoolModel {
    enum Step: Hashable, CaseIterable { case start, finish, fail, collect, close }

    struct Live: Equatable {
        let socket: Int32
        var result: Bool?
    }

    var table = PooledConnections()
    var live: [Live] = []
    /// Connections that libcurl keeps unused.
    var unused: [Int32] = []
    var next: Int32 = 3

    private func ends(_ socket: Int32) -> ConnectionEnds {
        ConnectionEnds(localAddress: "127.0.0.1", localPort: socket, remoteAddress: "127.0.0.1", remotePort: 80)
    }

    /// Performs one step; returns false when the step is not possible in this state.
    mutating func take(_ step: Step) -> Bool {
        switch step {
        case .start:
            guard live.count < 3 else { return false }
            let socket = unused.popLast() ?? next
            next = max(next, socket + 1)
            let wasIdle = table.isIdle(socket)
            guard (table.take(ends(socket)) == socket) == wasIdle else { return false }
            live.append(Live(socket: socket))
        case .finish:
            guard let index = live.firstIndex(where: { $0.result == nil }) else { return false }
            live[index].result = true
            unused.append(live[index].socket)
        case .fail:
            guard let index = live.lastIndex(where: { $0.result == nil }) else { return false }
            live[index].result = false
            _ = table.forget(live[index].socket)
        case .collect:
            guard let index = live.firstIndex(where: { $0.result != nil }) else { return false }
            let done = live.remove(at: index)
            _ = table.leave(ends(done.socket), to: .notes, keeping: done.result == true ? done.socket : nil)
        case .close:
            guard let socket = unused.popLast() else { return false }
            // An uncollected transfer keeps its connection open when the upstream closes it, because the socket is not watched.
            _ = table.forget(socket)
            if live.contains(where: { $0.socket == socket }) { unused.append(socket) }
        }
        return true
    }

    var faults: [String] {
        var faults: [String] = []
        for transfer in live where transfer.result == nil && table.isIdle(transfer.socket) {
            faults.append("socket \(transfer.socket) is idle with a transfer on it")
        }
        for socket in unused where live.allSatisfy({ $0.socket != socket }) && !table.isIdle(socket) {
            faults.append("socket \(socket) is unused and not watched")
        }
        return faults
    }
}

@Suite struct PooledConnectionsTests {
    @Test func noSocketIsIdleWhileATransferOwnsIt() {
        var seen = 0
        func explore(_ pool: PoolModel, _ path: [PoolModel.Step]) {
            seen += 1
            #expect(pool.faults.isEmpty, "\(path): \(pool.faults)")
            guard path.count < 8, pool.faults.isEmpty else { return }
            for step in PoolModel.Step.allCases {
                var next = pool
                if next.take(step) { explore(next, path + [step]) }
            }
        }
        explore(PoolModel(), [])
        #expect(seen > 2500)
    }

    private static let ends = ConnectionEnds(localAddress: "127.0.0.1", localPort: 5, remoteAddress: "127.0.0.1", remotePort: 80)
    private static let others = ConnectionEnds(localAddress: "127.0.0.1", localPort: 6, remoteAddress: "127.0.0.1", remotePort: 80)

    /// The table in a class, so that expectations can call its mutating functions.
    private final class Table {
        private var table = PooledConnections()
        func take(_ ends: ConnectionEnds, insteadOf former: ConnectionEnds? = nil) -> Int32? { table.take(ends, insteadOf: former) }
        func leave(_ ends: ConnectionEnds, keeping socket: Int32?) -> Bool { table.leave(ends, to: .notes, keeping: socket) }
        func forget(_ socket: Int32) -> Bool { table.forget(socket) }
        func isIdle(_ socket: Int32) -> Bool { table.isIdle(socket) }
    }

    /// When libcurl sends a request again on another connection, the transfer no longer holds the first connection.
    @Test func aTransferHasOneConnection() {
        let table = Table()
        #expect(table.take(Self.ends) == nil)
        #expect(table.take(Self.others, insteadOf: Self.ends) == nil)
        #expect(table.take(Self.ends) == nil)
        #expect(table.leave(Self.ends, keeping: 9))
        #expect(table.isIdle(9))
        #expect(table.take(Self.ends) == 9)
        #expect(!table.isIdle(9))
    }

    @Test func aSharedConnectionIsIdleWhenTheLastHasLeft() {
        let table = Table()
        _ = table.take(Self.ends)
        _ = table.take(Self.ends)
        #expect(!table.leave(Self.ends, keeping: 9))
        #expect(table.leave(Self.ends, keeping: 9))
        #expect(table.forget(9))
        #expect(!table.forget(9) && !table.isIdle(9))
    }
}
