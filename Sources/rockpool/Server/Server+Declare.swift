// `PUT /v1/upstreams/{name}`: the server adds an upstream to its own configuration file (docs/reference/admin-api.md#server).
import RockpoolAdmin
import RockpoolCore
import RockpoolEngine
import RockpoolNetwork

extension UpstreamDeclaration {
    /// Adds the upstream to a file, and has the server read it again. Where that fails, the file is as it was.
    func added(
        to file: String, of engine: Engine, listeners: Listeners, reload: @Sendable () async throws -> ReloadOutcome
    ) async throws(Refusal) -> Outcome {
        let known = engine.configuration
        let (edit, text): (ConfigurationEdit, String)
        do {
            let place = try APIAddress(origin).exact().place
            if let same = known.upstreams.first(where: { $0.name == name || $0.place == place }) {
                guard same.name == name, same.place == place else {
                    throw Refusal.notPossible("\(same.name) is declared for \(same.place)")
                }
                return Outcome(isKnown: true, gateway: listeners.gateways[name])
            }
            let declared = try APIAddress(origin).exact(besides: known, name: name)
            let address = try gateway ?? LocalPort.freeAddress(from: declared.gateway)
            edit = try ConfigurationEdit(file: file)
            let proposed = ProposedConfiguration(place: declared.place, name: name, api: ProposedAPI(), gateway: address)
            text = try edit.adding(proposed.entry)
        } catch let refusal as Refusal {
            throw refusal
        } catch let error as ConfigurationError {
            throw .invalid(error.problems.map(\.message).joined(separator: "; "))
        } catch { throw .invalid((error as? CommandFailure)?.message ?? "\(error)") }
        do { try edit.write(text) } catch { throw .notPossible("\(error.message); with its rights: sudo rockpool add \(origin)") }
        do { _ = try await reload() } catch {
            try? edit.write(edit.text)
            throw .notPossible("nothing is changed: \((error as? CommandFailure)?.message ?? "\(error)")")
        }
        return Outcome(isKnown: false, gateway: listeners.gateways[name])
    }
}
