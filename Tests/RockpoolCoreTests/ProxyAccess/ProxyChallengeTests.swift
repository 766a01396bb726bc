// Which answers of a parent proxy are a step of a handshake.
import HTTPTypes
import RockpoolCore
import Testing

@Suite struct ProxyChallengeTests {
    @Test(
        arguments: [
            (["NTLM TlRMTVNTUAACAAAA"], true), (["Negotiate oYG2MIGz", "Basic realm=\"x\""], true), (["NTLM"], false),
            (["Negotiate"], false),
            (["Basic realm=\"x\""], false), ([], false), (["NTLM a b"], false), (["NTLM %%%%"], false),
        ])
    func aMessageContinues(values: [String], expected: Bool) {
        var fields = HTTPFields()
        fields[values: .proxyAuthenticate] = values
        #expect(ProxyChallenge.continues(fields) == expected)
    }
}
