// Spans in the JSON encoding of OTLP (https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding).

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
