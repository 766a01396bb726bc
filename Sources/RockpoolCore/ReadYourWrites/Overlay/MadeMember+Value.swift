// Members of a new entity as its API will make them, until it has (docs/outbox.md#learning).

extension MadeMember {
    /// The value of a new entity; nil where it cannot be told.
    func value(id: LocalID, madeAt: Timestamp?) -> JSONValue? {
        switch self {
        case .link(let template): return .string(template.replacing("{id}", with: id.text))
        case .time(let digits, let offset):
            guard let madeAt else { return nil }
            let moment = Timestamp(milliseconds: madeAt.milliseconds + (Self.seconds(of: offset) ?? 0) * 1000)
            let text = RFC3339.format(moment)
            let fraction = "\(text.dropFirst(20).prefix(3))000000".prefix(digits)
            return .string("\(text.prefix(19))\(digits == 0 ? "" : ".\(fraction)")\(offset)")
        }
    }
}
