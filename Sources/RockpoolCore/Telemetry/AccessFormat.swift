// The formats of the access log.

/// The format of the access log.
package enum AccessFormat: String, CaseIterable, Sendable, Codable { case off, json, common }
