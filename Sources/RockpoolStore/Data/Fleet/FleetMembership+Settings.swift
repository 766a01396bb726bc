// The comparison of a node's settings with those of the others (docs/fleet.md#settings).
import Logging
import RockpoolCore
import Synchronization

extension FleetMembership {
    /// Takes over the settings of this node, which the next renewal of its lease tells the others.
    func take(_ settings: AgreedSettings) { state.withLock { $0.settings = settings } }

    /// Tells the others the settings of this node if they are not those that were told, and looks at theirs.
    func compareSettings(on connection: PostgreSQLConnection, declared: inout AgreedSettings?) throws(PostgreSQLError) {
        guard let own = state.withLock(\.settings) else { return }
        if own != declared {
            try connection.run(
                "INSERT INTO rockpool.meta VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                [.text(SharedSchema.settingsPrefix + replica.node), .text(own.text)], within: .seconds(5))
            declared = own
        }
        let rows = try connection.run(
            """
            SELECT node.id, node.name, meta.value FROM rockpool.node JOIN rockpool.meta ON meta.name = '\(SharedSchema.settingsPrefix)' || node.id
                WHERE node.id <> $1 AND meta.value <> $2 AND NOT fenced AND expires > clock_timestamp() ORDER BY node.name, node.id
            """, [.text(replica.node), .text(own.text)], within: .seconds(5))
        note(
            rows.compactMap { row in
                guard row.count == 3, let id = row[0].text, let name = row[1].text,
                    let keys = row[2].text.flatMap(AgreedSettings.init(text:))?.differences(from: own), !keys.isEmpty
                else { return nil }
                return FleetDifference(node: id, name: name, keys: keys)
            })
    }

    /// Logs what is new.
    private func note(_ differences: [FleetDifference]) {
        let before = state.withLock { state in
            defer { state.facts.differences = differences }
            return state.facts.differences
        }
        for difference in differences where !before.contains(difference) {
            replica.logger.warning(
                "the settings of another node differ from those of this one",
                metadata: ["node": "\(difference.name)", "keys": "\(difference.words)"])
        }
        if differences.isEmpty, !before.isEmpty { replica.logger.notice("the settings of all nodes agree again") }
    }
}
