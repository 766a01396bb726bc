// The shares of a descriptor limit never exceed the limit in total; with a large limit no share is restricted.
import RockpoolCore
import Testing

@Suite struct DescriptorBudgetTests {
    /// Returns the descriptors that the process itself needs at most: databases, listeners, timers, and three for each event loop.
    private func own(_ budget: DescriptorBudget) -> Int { 53 + 3 * budget.eventLoops }

    @Test(arguments: [DescriptorBudget.least, 128, 256, 1024, 4096, 20_000, 65_536, 1 << 20, Int.max])
    func theSharesFitIntoTheLimit(_ limit: Int) {
        let budget = DescriptorBudget(limit: limit)
        let (clients, admin, upstreams) = (budget.clientConnections, budget.adminConnections, budget.upstreamConnections)
        #expect(own(budget) + clients + 2 * admin + 2 * upstreams <= budget.acceptsBelow)
        #expect(budget.acceptsBelow + budget.reserve == budget.limit && budget.reserve >= 8)
        #expect(clients >= 8 && admin >= 2 && upstreams >= 4 && budget.eventLoops >= 1)
    }

    /// Under a small limit, each client may also have a file open, or the far side of a tunnel, besides upstream connections.
    @Test(arguments: [DescriptorBudget.least, 128, 256, 512, 1024])
    func theReserveHasAFileForEachClient(_ limit: Int) {
        let budget = DescriptorBudget(limit: limit)
        let clients = 2 * budget.clientConnections + budget.upstreamConnections
        #expect(own(budget) + clients + 2 * budget.adminConnections <= budget.limit)
    }

    @Test(arguments: [(128, 2, 4, 8, 26), (256, 4, 11, 23, 73), (1024, 16, 57, 115, 346), (20_000, 312, 64, 1024, 12_080)])
    func theSharesOf(_ limit: Int, loops: Int, admin: Int, upstreams: Int, clients: Int) {
        let budget = DescriptorBudget(limit: limit)
        #expect(budget.eventLoops == loops && budget.adminConnections == admin)
        #expect(budget.upstreamConnections == upstreams && budget.clientConnections == clients)
    }

    @Test func whatIsPlentyHoldsNothingBack() {
        let budget = DescriptorBudget.unlimited
        #expect(budget.adminConnections == 64 && budget.clientConnections > 1_000_000)
    }

    @Test(arguments: [Int.min, -1, 0, 1, 64]) func tooLittleIsNoTrap(_ limit: Int) {
        let budget = DescriptorBudget(limit: limit)
        #expect(budget.limit == max(0, limit) && budget.limit < DescriptorBudget.least)
        #expect(budget.clientConnections == 1 && budget.adminConnections == 2 && budget.reserve >= 0)
    }
}
