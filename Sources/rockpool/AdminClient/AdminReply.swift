// The server's reply to a call.
import Foundation

/// The server's response, always a 2xx.
struct AdminReply: Hashable, Sendable {
    var status: Int
    var body: Data

    /// Decodes the body as one of our reports.
    func decoded<Report: Decodable>(as type: Report.Type = Report.self) throws -> Report {
        do {
            return try JSONDecoder().decode(type, from: body)
        } catch {
            throw CommandFailure(.failed, "the server's response cannot be read: \(error)")
        }
    }
}
