// The formats of the logs.

/// The format of the access log.
package enum AccessFormat: String, CaseIterable, Sendable, Codable { case off, json, common }

/// The format of the log.
package enum LogFormat: String, CaseIterable, Sendable, Codable { case text, json }
