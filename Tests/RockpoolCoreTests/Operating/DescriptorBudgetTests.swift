// The shares of a limit on descriptors never add up to more than the limit, and where there is plenty nothing is held back.
import RockpoolCore
import Testing

@Suite struct DescriptorBudgetTests {
    /// What the process holds for itself at most: databases, listeners, timers, and three descriptors for each event loop.
    private func own(_ budget: DescriptorBudget) -> Int { 53 + 3 * budget.eventLoops }

    @Test(arguments: [DescriptorBudget.least, 128, 256, 1024, 4096, 20_000, 65_536, 1 << 20, Int.max])
    func theSharesFitIntoTheLimit(_ limit: Int) {
        let budget = DescriptorBudget(limit: limit)
        let (clients, admin, upstreams) = (budget.clientConnections, budget.adminConnections, budget.upstreamConnections)
        #expect(own(budget) + clients + 2 * admin + 2 * upstreams <= budget.acceptsBelow)
        #expect(budget.acceptsBelow + budget.reserve == budget.limit && budget.reserve >= 8)
        #expect(clients >= 8 && admin >= 2 && upstreams >= 4 && budget.eventLoops >= 1)
    }

    /// Each client of a small limit may have a file open as well, or the far side of a tunnel, beside what comes from upstreams.
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
