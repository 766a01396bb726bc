// Calls of gRPC, and the end of one whose upstream is away (RockpoolCore/Protocols/StreamLimits.swift).
import HTTPTypes
import Testing

@testable import RockpoolCore

@Suite struct RemoteCallTests {
    @Test(arguments: [
        ("application/grpc", true), ("application/grpc+proto", true), ("Application/GRPC; x=1", true), ("application/grpc-web", false),
        ("application/grpc-web+proto", false), ("application/grpcs", false), ("application/connect+proto", false),
        ("application/proto", false), ("", false),
    ])
    func callsAreKnownByTheirType(type: String, isCall: Bool) {
        #expect(RemoteCall.isMade(by: type.isEmpty ? [:] : [.contentType: type]) == isCall)
    }

    @Test func theEndOfACallHasAReason() {
        let head = RemoteCall.unavailableReply("a.example:443: 100 % \u{e9}bb\n")
        #expect(head.status == 200 && head.fields[.contentType] == "application/grpc" && head.fields[.grpcStatus] == "14")
        #expect(head.fields[.grpcMessage] == "a.example:443: 100 %25 %C3%A9bb%0A")
        #expect(RemoteCall.unavailable("away")[.grpcMessage] == "away")
    }
}
