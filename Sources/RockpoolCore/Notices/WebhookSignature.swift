// Signatures of messages by the Standard Webhooks specification, version 1.0.0 (docs/outbox.md#messages).
package import HTTPTypes

/// Signs the body of a message with the receiver's secrets.
package struct WebhookSignature: Sendable {
    /// Secrets of one file; two are enough to change one.
    package static let secretLimit = 8
    private static let prefix = "whsec_"

    let keys: [[UInt8]]
    let code: @Sendable ([UInt8], [UInt8]) -> [UInt8]

    /// - Parameters:
    ///   - text: One secret a line: `whsec_` and base64, or any other text, whose bytes are the key.
    ///   - code: Returns the HMAC-SHA256 of a message with a key.
    /// - Returns: nil if there is no secret, or one that is not base64 after `whsec_`.
    package init?(secrets text: String, code: @escaping @Sendable (_ message: [UInt8], _ key: [UInt8]) -> [UInt8]) {
        let lines = text.split(whereSeparator: \.isNewline).map(Self.trimmed).filter { !$0.isEmpty }.prefix(Self.secretLimit)
        let keys = lines.map { $0.hasPrefix(Self.prefix) ? Base64.decode(String($0.dropFirst(Self.prefix.count))) : Array($0.utf8) }
        guard !keys.isEmpty, keys.allSatisfy({ $0?.isEmpty == false }) else { return nil }
        self.keys = keys.compactMap(\.self)
        self.code = code
    }

    private static func trimmed(_ line: Substring) -> Substring {
        let end = line.lastIndex { !$0.isWhitespace }.map(line.index(after:)) ?? line.startIndex
        return line[..<end].drop(while: \.isWhitespace)
    }

    /// The fields of one sending. The time is that of the sending: receivers refuse old ones.
    package func fields(id: String, at moment: Timestamp, body: [UInt8]) -> HTTPFields {
        let time = "\(moment.milliseconds / 1000)"
        let message = Array("\(id).\(time).".utf8) + body
        let signatures = keys.map { "v1," + Base64.encode(code(message, $0)) }
        return [.webhookID: id, .webhookTimestamp: time, .webhookSignature: signatures.joined(separator: " ")]
    }
}
