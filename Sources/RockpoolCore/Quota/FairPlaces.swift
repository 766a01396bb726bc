// Places at hosts, of which each and all together have a number, and which clients share (docs/security-model.md#shares-of-clients).

/// Work that needs a place at its host and one of all places. No host takes more than three quarters of all.
package struct FairPlaces<Host: Hashable, Client: Hashable, Work> {
    private let hostLimit: Int
    private var hosts: [Host: FairQueue<Client, Work>] = [:]
    /// Who has a place at its host.
    private var all: FairQueue<Client, (host: Host, work: Work)>

    /// - Parameters:
    ///   - limit: the number of all places, at least 1.
    ///   - hostLimit: the most at one host.
    package init(limit: Int, hostLimit: Int) {
        self.hostLimit = min(hostLimit, max(1, limit * 3 / 4))
        all = FairQueue(limit: limit)
    }

    package var isEmpty: Bool { hosts.isEmpty && all.isEmpty }

    /// The hosts that work waits for, or has a place at.
    package var used: [Host] { Array(hosts.keys) }

    /// Takes a place for work of `client` at `host`, or lets it wait.
    /// - Returns: true if it begins now.
    package mutating func enter(_ work: Work, at host: Host, of client: Client) -> Bool {
        guard hosts[host, default: FairQueue(limit: hostLimit)].enter(work, of: client) else { return false }
        return all.enter((host, work), of: client)
    }

    /// Gives back the place of work of `client` at `host` that has ended.
    /// - Returns: the work that begins now.
    package mutating func leave(_ host: Host, of client: Client) -> [Work] {
        let begun = all.leave(client).map(\.work.work)
        return begun + leaveHost(host, of: client)
    }

    /// Removes work of `client` that waits.
    /// - Returns: the work that begins in its stead; nil if it does not wait.
    package mutating func withdraw(from host: Host, of client: Client, where isIt: (Work) -> Bool) -> [Work]? {
        if hosts[host]?.withdraw(from: client, where: isIt) == true {
            drop(host)
            return []
        }
        guard all.withdraw(from: client, where: { $0.host == host && isIt($0.work) }) else { return nil }
        return leaveHost(host, of: client)
    }

    /// Removes all work that waits for `host`.
    package mutating func withdrawAll(from host: Host) -> [Work] {
        var withdrawn = hosts[host]?.withdrawAll().map(\.work) ?? []
        for (client, waiting) in all.withdrawAll(where: { $0.host == host }) {
            withdrawn.append(waiting.work)
            _ = hosts[host]?.leave(client)
        }
        drop(host)
        return withdrawn
    }

    private mutating func leaveHost(_ host: Host, of client: Client) -> [Work] {
        let next = hosts[host]?.leave(client) ?? []
        drop(host)
        return next.filter { all.enter((host, $0.work), of: $0.client) }.map(\.work)
    }

    private mutating func drop(_ host: Host) {
        if hosts[host]?.isEmpty == true { hosts[host] = nil }
    }
}
