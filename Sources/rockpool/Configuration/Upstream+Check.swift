// Combinations within one upstream that cannot work (docs/reference/configuration.md#checks).
import RockpoolCore

extension Upstream {
    /// Every impossible combination; `key` is the key of this upstream, `categories` are the existing names.
    func contradictions(at key: String, categories: [String]) -> [Contradiction] {
        var found: [Contradiction] = []
        if tls.clientCert != nil, tls.clientKey == nil {
            found.append(Contradiction("\(key).tls.client_cert", "needs tls.client_key"))
        }
        if tls.clientKey != nil, tls.clientCert == nil {
            found.append(Contradiction("\(key).tls.client_key", "needs tls.client_cert"))
        }
        found += parent?.contradictions(at: "\(key).via") ?? []
        if case .at = learn.description, learn.description.url(at: origin) == nil {
            found.append(Contradiction("\(key).learn.description", "is not a URL of \(origin.url)"))
        }
        for (index, route) in routes.enumerated() {
            found += route.contradictions(at: "\(key).routes[\(index)]", categories: categories)
        }
        for (index, resource) in resources.enumerated() {
            found += resource.contradictions(at: "\(key).resources[\(index)]")
            if let sync = resource.sync, let push = sync.push, BatchFormat(of: self, path: push) != sync.batch {
                found.append(Contradiction("\(key).resources[\(index)].sync.batch", "differs from that of another resource with this push"))
            }
            if !resource.label.isEmpty, resources[..<index].contains(where: { $0.label == resource.label }) {
                let message = "\(resource.label) is described already"
                let part = resource.isSingleton ? "item" : "collection"
                found.append(Contradiction("\(key).resources[\(index)].\(part)", message))
            }
        }
        return found
    }
}

extension ParentSettings {
    /// Every impossible combination; `key` is the key of these settings.
    func contradictions(at key: String) -> [Contradiction] {
        if url == ParentRule.direct, !others.isEmpty { return [Contradiction("\(key).others", "need a parent; direct is none")] }
        if let twice = all.indices.first(where: { index in all[..<index].contains { $0.url == all[index].url } }) {
            return [Contradiction("\(key).others[\(twice - 1)].url", "names a parent twice")]
        }
        return proofContradictions(at: key)
            + others.enumerated().flatMap { $0.element.proofContradictions(at: "\(key).others[\($0.offset)]") }
    }

    private func proofContradictions(at key: String) -> [Contradiction] {
        if [.basic, .ntlm].contains(auth), user == nil || passwordFile == nil {
            return [Contradiction("\(key).auth", "\(auth.rawValue) needs user and password_file")]
        }
        if auth == .none, user != nil || passwordFile != nil {
            return [Contradiction("\(key).user", "is sent only with auth: basic, negotiate or ntlm")]
        }
        if url == ParentRule.direct, auth != .none { return [Contradiction("\(key).auth", "needs a parent; direct is none")] }
        return []
    }
}

extension Route {
    fileprivate func contradictions(at key: String, categories: [String]) -> [Contradiction] {
        var found: [Contradiction] = []
        if let category, !categories.contains(category) {
            found.append(.unknownCategory(named: category, at: "\(key).category", known: categories))
        }
        if strategy == .networkOnly, store == .always {
            found.append(Contradiction("\(key).store", "network-only stores nothing, so store cannot be always"))
        }
        if read, queue == .always { found.append(Contradiction("\(key).queue", "a request that reads is never queued")) }
        if kind == .git || kind == .oci {
            let name = "kind: \(kind.rawValue)"
            if match.patternMethod != nil {
                found.append(Contradiction("\(key).kind", "\(name) needs every method of the repository: leave the method out of match"))
            }
            if queue == .always { found.append(Contradiction("\(key).queue", "\(name) queues nothing")) }
            if cache == .body { found.append(Contradiction("\(key).cache", "\(name) decides itself which requests read")) }
        } else if isReadByBody, let method = match.patternMethod,
            !(kind == .graphql ? ["POST"] : BodyKey.declarable).contains(method)
        {
            let key = kind == .graphql ? "\(key).kind" : cache == .body ? "\(key).cache" : "\(key).read"
            let known = kind == .graphql ? "POST" : BodyKey.declarable.sorted().joined(separator: ", ")
            found.append(Contradiction(key, "a \(method) is not read by its body; possible for \(known)"))
        }
        if read, kind != .standard {
            found.append(Contradiction("\(key).read", "kind: \(kind.rawValue) decides itself which requests read"))
        }
        if kind == .telemetry, queue == .never { found.append(Contradiction("\(key).queue", "kind: telemetry queues its writes")) }
        if kind == .telemetry, order != nil {
            found.append(Contradiction("\(key).order", "kind: telemetry keeps no order; to keep one, queue: always without the kind"))
        }
        if kind != .telemetry {
            for (name, isSet) in [("keep", keep != nil), ("limit", limit != nil)] where isSet {
                found.append(Contradiction("\(key).\(name)", "is of kind: telemetry alone"))
            }
        }
        if offlineResponse != nil, offlineResponse != .accepted, kind == .s3 {
            found.append(Contradiction("\(key).offline_response", "kind: s3 has replies of its own"))
        }
        if case .fixed(let reply)? = offlineResponse, reply.status == 204 || reply.status == 205, !reply.body.isEmpty {
            found.append(Contradiction("\(key).offline_response.body", "a \(reply.status) has no body"))
        }
        if ttl?.isContradictory == true { found.append(Contradiction("\(key).ttl.min", "is above max")) }
        if strategy == .cacheOnly, store == .never {
            found.append(Contradiction("\(key).store", "cache-only has no response if nothing is stored"))
        }
        return found + (success?.contradictions(at: "\(key).success") ?? [])
    }
}

extension String {
    /// The method of a route's pattern; nil if it names none.
    fileprivate var patternMethod: String? {
        let words = split(separator: " ")
        return words.count > 1 ? String(words[0]) : nil
    }
}

extension Resource {
    fileprivate func contradictions(at key: String) -> [Contradiction] {
        var found: [Contradiction] = []
        let variables = item.map { PathTemplate($0).variables } ?? []
        if isSingleton, item == nil {
            found.append(Contradiction("\(key).collection", "is missing; only a single item such as /me, which item names, has none"))
        } else if isSingleton, variables.contains("id") {
            found.append(
                Contradiction("\(key).collection", "is missing: an item with {id} belongs to one; without {id}, item is a single item"))
        } else if !isSingleton, item != nil, variables.isEmpty {
            found.append(Contradiction("\(key).item", "needs {id}; a single item such as /me has no collection"))
        }
        if offlineResponse == .optimistic, item == nil {
            found.append(Contradiction("\(key).offline_response", "optimistic needs item, the path of one entity"))
        }
        found += sync?.batch.faults.map { Contradiction("\(key).sync.batch.\($0.key)", $0.fault) } ?? []
        if let mark, [id, version, updatedAt].contains(mark) {
            found.append(Contradiction("\(key).mark", "is a member of the upstream's; name one that its entries do not have"))
        }
        if delta != nil || sync?.pull != nil, DeltaShape(self) == nil {
            let part = delta == nil ? "sync.pull" : "delta"
            found.append(Contradiction("\(key).\(part)", "cannot be requested: the only variable allowed in its paths is {id} of item"))
        }
        return found + (success?.contradictions(at: "\(key).success") ?? [])
    }
}

extension SuccessRule {
    fileprivate func contradictions(at key: String) -> [Contradiction] {
        switch (pointer, absent, equals) {
        case (nil, nil, nil) where status.isEmpty: [Contradiction(key, "needs status or pointer")]
        case (nil, nil, nil): []
        case (nil, _?, _): [Contradiction("\(key).absent", "needs pointer")]
        case (nil, nil, _?): [Contradiction("\(key).equals", "needs pointer")]
        case (_?, nil, nil): [Contradiction("\(key).pointer", "needs absent or equals")]
        case (_?, _?, _?): [Contradiction("\(key).equals", "cannot be combined with absent")]
        default: []
        }
    }
}
