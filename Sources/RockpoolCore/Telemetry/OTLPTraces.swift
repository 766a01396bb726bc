// Spans in the JSON encoding of OTLP (https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding).
import HTTPTypes

/// Writes spans as the body of a request to `/v1/traces`.
package enum OTLPTraces {
    /// The values of `kind`.
    private static let (server, client, producer) = (2, 3, 4)
    /// The value of `status.code` for errors.
    private static let error = 2

    /// What spans are made of.
    package enum Ended: Sendable {
        case exchange(TraceSpan, ExchangeRecord)
        case attempt(AttemptSpan)
    }

    /// Returns the body for the spans of some exchanges and attempts.
    package static func body(of ended: [Ended], service: String, version: String) -> JSONValue {
        let resource: JSONValue = [
            "attributes": .array([attribute("service.name", .string(service)), attribute("service.version", .string(version))])
        ]
        let scope: JSONValue = [
            "scope": ["name": "rockpool", "version": .string(version)],
            "spans": .array(ended.flatMap(spans)),
        ]
        return ["resourceSpans": [["resource": resource, "scopeSpans": [scope]]]]
    }

    private static func spans(of ended: Ended) -> [JSONValue] {
        switch ended {
        case .exchange(let span, let record): json(of: record, span)
        case .attempt(let span): [json(of: span)]
        }
    }

    /// The span of the exchange with its steps as events, and that of the fetch, if there was one.
    private static func json(of record: ExchangeRecord, _ span: TraceSpan) -> [JSONValue] {
        var attributes = [
            attribute("http.request.method", .string(record.method)), attribute("url.full", .string(record.url)),
            attribute("http.response.status_code", integer: Int64(record.status)),
            attribute("http.response.body.size", integer: record.bytes), attribute("rockpool.verdict", .string(record.verdict)),
        ]
        let texts = [
            ("rockpool.upstream", record.upstream), ("rockpool.category", record.category),
            ("rockpool.cache_status", record.cacheStatus), ("rockpool.why", record.why.isEmpty ? nil : record.why),
            ("rockpool.operation", record.operation), ("error.type", record.error),
        ]
        attributes += texts.compactMap { name, text in text.map { attribute(name, .string($0)) } }
        let events = record.steps.map { step -> JSONValue in
            [
                "timeUnixNano": nanoseconds(record.at, step.after), "name": .string(step.name),
                "attributes": .array(step.detail.isEmpty ? [] : [attribute("detail", .string(step.detail))]),
            ]
        }
        var whole: JSONValue = [
            "traceId": .string(span.traceID), "spanId": .string(span.spanID), "name": .string(record.method),
            "kind": .number(JSONNumber(Int64(server))), "startTimeUnixNano": nanoseconds(record.at, 0),
            "endTimeUnixNano": nanoseconds(record.at, record.endAfter), "attributes": .array(attributes), "events": .array(events),
            "status": record.status >= 500 ? ["code": .number(JSONNumber(Int64(error)))] : [:],
        ]
        if let parent = span.parentID { whole["parentSpanId"] = .string(parent) }
        return [whole] + [fetch(of: record, span) ?? enqueuing(of: record, span)].compactMap(\.self)
    }

    /// The moment in which a write was queued that was not sent before; nil for any other exchange. Its attempts are parts of this span.
    private static func enqueuing(of record: ExchangeRecord, _ span: TraceSpan) -> JSONValue? {
        guard let step = record.steps.first(where: { $0.name == "enqueued" }) else { return nil }
        return [
            "traceId": .string(span.traceID), "spanId": .string(span.fetchID), "parentSpanId": .string(span.spanID),
            "name": .string("\(record.method) queued"), "kind": .number(JSONNumber(Int64(producer))),
            "startTimeUnixNano": nanoseconds(record.at, step.after), "endTimeUnixNano": nanoseconds(record.at, step.after),
            "attributes": .array(record.operation.map { [attribute("rockpool.operation", .string($0))] } ?? []), "status": [:],
        ]
    }

    private static func json(of span: AttemptSpan) -> JSONValue {
        var attributes = [
            attribute("http.request.method", .string(span.method)), attribute("url.full", .string(span.url)),
            attribute("rockpool.upstream", .string(span.upstream)), attribute("rockpool.operation", .string(span.operation)),
            attribute("http.request.resend_count", integer: Int64(span.number - 1)),
        ]
        if let status = span.status { attributes.append(attribute("http.response.status_code", integer: Int64(status))) }
        if let error = span.error { attributes.append(attribute("error.type", .string(error))) }
        let isError = span.status.map { $0 >= 400 } ?? true
        return [
            "traceId": .string(span.traceID), "spanId": .string(span.spanID), "parentSpanId": .string(span.parentID),
            "name": .string("\(span.method) replay"), "kind": .number(JSONNumber(Int64(client))),
            "startTimeUnixNano": nanoseconds(span.startedAt, 0), "endTimeUnixNano": nanoseconds(span.endedAt, 0),
            "attributes": .array(attributes), "status": isError ? ["code": .number(JSONNumber(Int64(error)))] : [:],
        ]
    }

    /// The fetch, with the phases of its transfer as attributes; nil if the exchange had none.
    private static func fetch(of record: ExchangeRecord, _ span: TraceSpan) -> JSONValue? {
        guard let step = record.steps.first(where: { $0.name == "fetched" || $0.name == "failed" }), let timings = record.timings else {
            return nil
        }
        let phases = [
            ("queue", timings.queue), ("dns", timings.dns), ("connect", timings.connect), ("tls", timings.tls),
            ("first_byte", timings.firstByte), ("transfer", timings.transfer ?? 0),
        ]
        let head = timings.queue + timings.dns + timings.connect + timings.tls + timings.firstByte
        let start = max(0, step.after - head)
        return [
            "traceId": .string(span.traceID), "spanId": .string(span.fetchID), "parentSpanId": .string(span.spanID),
            "name": .string("\(record.method) fetch"), "kind": .number(JSONNumber(Int64(client))),
            "startTimeUnixNano": nanoseconds(record.at, start),
            "endTimeUnixNano": nanoseconds(record.at, min(max(start + head + (timings.transfer ?? 0), start), max(start, record.endAfter))),
            "attributes": .array(
                [attribute("http.request.method", .string(record.method)), attribute("url.full", .string(record.url))]
                    + phases.map { attribute("rockpool.\($0.0)_us", integer: $0.1) }),
            "status": step.name == "failed" ? ["code": .number(JSONNumber(Int64(error)))] : [:],
        ]
    }

    private static func attribute(_ name: String, _ text: JSONValue) -> JSONValue {
        ["key": .string(name), "value": ["stringValue": text]]
    }

    /// 64-bit integers are strings in this encoding.
    private static func attribute(_ name: String, integer: Int64) -> JSONValue {
        ["key": .string(name), "value": ["intValue": .string("\(integer)")]]
    }

    private static func nanoseconds(_ moment: Timestamp, _ microseconds: Int64) -> JSONValue {
        .string("\(moment.milliseconds * 1_000_000 + max(0, microseconds) * 1000)")
    }
}

/// The ids of the span of an exchange, and of the fetch within it (docs/guide/operating.md#traces).
package struct TraceSpan: Hashable, Sendable {
    package let traceID: String
    package let spanID: String
    /// The client's span; nil where the trace begins here.
    package let parentID: String?
    /// The span of the request to the upstream.
    package let fetchID: String

    /// Continues the trace of a client, or begins one.
    /// - Parameters:
    ///   - incoming: the client's context; nil without one.
    ///   - draw: a number of 0 to 99: a trace is begun if it is below `percent`.
    ///   - random: source of ids.
    /// - Returns: nil if the trace is not recorded.
    package init?(continuing incoming: TraceContext?, percent: Int, draw: Int, random: () -> UInt64) {
        if let incoming {
            guard incoming.isSampled else { return nil }
            (traceID, parentID) = (incoming.traceID, incoming.spanID)
        } else {
            guard draw < percent else { return nil }
            (traceID, parentID) = (TraceContext.digits(of: random()) + TraceContext.digits(of: random()), nil)
        }
        spanID = TraceContext.digits(of: random())
        fetchID = TraceContext.digits(of: random())
    }

    /// The context of the request to the upstream.
    package var outgoing: TraceContext { TraceContext(traceID: traceID, spanID: fetchID, isSampled: true) }
}

/// An attempt to deliver a queued write, in the trace of the request that queued it.
package struct AttemptSpan: Hashable, Sendable {
    package let traceID: String
    package let spanID: String
    /// The span in which the write was queued.
    package let parentID: String
    /// The operation, and the number of this attempt, from 1.
    package let operation: String
    package let number: Int
    package let method: String
    /// The URL, with secret parameters redacted.
    package let url: String
    package let upstream: String
    package let startedAt: Timestamp
    package var endedAt: Timestamp
    /// The status of the answer; nil without one.
    package var status: Int?
    /// What failed; nil with an answer.
    package var error: String?

    /// Begins an attempt. The request that it sends has to carry `outgoing`.
    /// - Parameter spanID: a new id, from a random number.
    /// - Returns: nil if the write carries no `traceparent`, or one of a trace that is not recorded.
    package init?(_ operation: QueuedWrite, sending request: RequestHead, startedAt: Timestamp, spanID: UInt64) {
        let values = operation.request.fields[values: .traceparent]
        guard values.count == 1, let queued = TraceContext(values[0]), queued.isSampled else { return nil }
        (traceID, parentID) = (queued.traceID, queued.spanID)
        self.spanID = TraceContext.digits(of: spanID)
        (self.operation, number) = (operation.id, operation.answeredAttempts + operation.networkAttempts + 1)
        (method, url) = (request.method.rawValue, SecretParameters.redacted(url: request.url))
        (upstream, self.startedAt, endedAt) = (operation.upstream, startedAt, startedAt)
    }

    /// The context of the request to the upstream.
    package var outgoing: TraceContext { TraceContext(traceID: traceID, spanID: spanID, isSampled: true) }
}

/// The value of `traceparent` (W3C Trace Context, https://www.w3.org/TR/trace-context/).
package struct TraceContext: Hashable, Sendable {
    /// 32 lower-case hexadecimal digits, not all 0.
    package let traceID: String
    /// 16 lower-case hexadecimal digits, not all 0: the span that the request was sent by.
    package let spanID: String
    /// True if the trace is recorded.
    package let isSampled: Bool

    /// A context within the same trace, or a new one.
    package init(traceID: String, spanID: String, isSampled: Bool) {
        (self.traceID, self.spanID, self.isSampled) = (traceID, spanID, isSampled)
    }

    /// Parses a field value; nil for one that is malformed, which then counts as absent. Later versions may append fields.
    package init?(_ value: String) {
        let parts = value.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count >= 4, Self.isHex(parts[0], count: 2), parts[0] != "ff", parts[0] != "00" || parts.count == 4,
            Self.isHex(parts[1], count: 32), Self.isHex(parts[2], count: 16), Self.isHex(parts[3], count: 2),
            parts[1].contains(where: { $0 != "0" }), parts[2].contains(where: { $0 != "0" }), let flags = UInt8(parts[3], radix: 16)
        else { return nil }
        (traceID, spanID, isSampled) = (String(parts[1]), String(parts[2]), flags & 1 == 1)
    }

    package var fieldValue: String { "00-\(traceID)-\(spanID)-\(isSampled ? "01" : "00")" }

    private static func isHex(_ text: Substring, count: Int) -> Bool {
        text.utf8.count == count && text.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
    }

    /// Returns 16 digits that are not all 0.
    package static func digits(of number: UInt64) -> String {
        let text = String(max(1, number), radix: 16)
        return String(repeating: "0", count: 16 - text.count) + text
    }
}

/// The collector of spans (docs/reference/configuration.md#tracing).
package struct TracingSettings: Hashable, Sendable {
    /// `otlp://host:port`, `otlps://host:port`, or the http or https URL of an OTLP receiver.
    package var url: String
    /// The part in percent of traces begun here that is recorded.
    package var samplePercent = 100
    /// The name of the service in traces.
    package var service = "rockpool"

    package init(url: String) { self.url = url }

    /// The URL that spans are posted to; nil for a text that is no such URL.
    package var endpoint: RequestHead? {
        var text = url
        var isShort = false
        for (short, scheme) in [("otlp://", "http://"), ("otlps://", "https://")] where text.hasPrefix(short) {
            (text, isShort) = (scheme + text.dropFirst(short.count), true)
        }
        guard var head = try? RequestHead(url: text) else { return nil }
        if isShort {
            guard head.target == "/" else { return nil }
            // The default port of OTLP over HTTP.
            if !text.dropFirst(8).contains(":") { head.origin.port = 4318 }
        }
        if head.target == "/" { head.target = "/v1/traces" }
        head.method = .post
        return head
    }
}
