// The decision of a listener to accept: based on the system's descriptor count and the connections accepted since, and repeated once
// descriptors are free.
import Glibc
import NIOCore
import NIOEmbedded
import RockpoolCore
import Synchronization
import Testing

@testable import RockpoolEngine

struct DescriptorGaugeTests {
    /// A descriptor count that a test sets, with the number of times it was read.
    private final class Count: Sendable {
        private let state: Mutex<(open: Int, asked: Int)>

        init(_ open: Int) { state = Mutex((open, 0)) }

        var asked: Int { state.withLock { $0.asked } }
        func set(_ open: Int) { state.withLock { $0.open = open } }
        func read() -> Int {
            state.withLock { state in
                state.asked += 1
                return state.open
            }
        }
    }

    private let budget = DescriptorBudget(limit: 256)
    private let start = NIODeadline.uptimeNanoseconds(1_000_000_000_000)

    @Test func itAcceptsUpToTheReserve() {
        let room = 3 * DescriptorGauge.batch
        let count = Count(budget.acceptsBelow - room)
        let gauge = DescriptorGauge(budget, count: { count.read() })
        for _ in 0..<3 { #expect(gauge.mayAccept(now: start)) }
        #expect(count.asked == 1)
        count.set(budget.acceptsBelow)
        #expect(!gauge.mayAccept(now: start) && !gauge.mayAccept(now: start) && count.asked == 3)
        count.set(budget.acceptsBelow - DescriptorGauge.batch)
        #expect(gauge.mayAccept(now: start))
        count.set(budget.acceptsBelow)
        #expect(!gauge.mayAccept(now: start))
    }

    @Test func whatIsOpenedBesideIsSeenASecondLater() {
        let count = Count(0)
        let gauge = DescriptorGauge(budget, count: { count.read() })
        #expect(gauge.mayAccept(now: start))
        count.set(budget.limit)
        #expect(gauge.mayAccept(now: start + .milliseconds(999)) && !gauge.mayAccept(now: start + .seconds(1)))
    }

    @Test func theSystemIsAskedForTheProcessesOwn() throws {
        let before = DescriptorGauge.openDescriptors()
        #expect(before > 2)
        let more = (0..<50).map { _ in dup(0) }
        defer { for descriptor in more { close(descriptor) } }
        // A tolerance, because other tests run at the same time.
        #expect(abs(DescriptorGauge.openDescriptors() - before - 50) < 25)
    }

    @Test func aListenerLooksAgainByItself() throws {
        let count = Count(budget.limit)
        let (reads, channel) = (Reads(), EmbeddedChannel())
        try channel.pipeline.syncOperations.addHandlers([reads, AcceptGate(DescriptorGauge(budget, count: { count.read() }))])
        channel.read()
        channel.read()
        #expect(reads.count == 0)
        channel.embeddedEventLoop.advanceTime(by: .seconds(1))
        #expect(reads.count == 0)
        count.set(0)
        channel.embeddedEventLoop.advanceTime(by: .seconds(1))
        #expect(reads.count == 1, "two pending reads are merged into one")
        channel.read()
        #expect(reads.count == 2)
        _ = try channel.finish()
    }

    /// Counts the reads that pass the gate.
    private final class Reads: ChannelOutboundHandler {
        typealias OutboundIn = Never
        var count = 0

        func read(context: ChannelHandlerContext) {
            count += 1
            context.read()
        }
    }
}
